// Makes the events of `RunEvent.ts` from the fields of their wire form. The hand-written decoder and the one over
// generated messages both end here, so that they cannot differ in a default, a bound or an unknown value.

import { MAX_MESSAGE_LENGTH, MAX_WORD_LENGTH } from "./limits.ts"
import type {
  CancelledEvent,
  CompletedEvent,
  DeltaEvent,
  FinishReason,
  NodeFailedEvent,
  NodeFailureCode,
  StartedEvent,
  TextDelta,
  TokenLogprob,
  TokenUsage
} from "./RunEvent.ts"

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const finishReasons: ReadonlyArray<FinishReason | undefined> = [
  undefined,
  "stop",
  "length",
  "tool_calls",
  "content_filter"
]

const failureCodes: ReadonlyArray<NodeFailureCode | undefined> = [
  undefined,
  "adapter_error",
  "rejected",
  "invalid_input",
  "timeout",
  "limit",
  "internal"
]

/** The wire's number of a finish reason. */
export const finishReasonNumber = (reason: FinishReason): number => finishReasons.indexOf(reason)

/** The wire's number of a failure code. */
export const failureCodeNumber = (code: NodeFailureCode): number => failureCodes.indexOf(code)

/** At most `limit` UTF-16 units of a text, never half a surrogate pair. */
export const cut = (text: string, limit: number): string => {
  if (text.length <= limit) return text
  const last = text.charCodeAt(limit - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit)
}

export const startedEvent = (backendTarget: string): StartedEvent =>
  backendTarget === ""
    ? { type: "started" }
    : { type: "started", backendTarget: cut(backendTarget, MAX_WORD_LENGTH) }

export const textDelta = (
  kind: TextDelta["kind"],
  choice: number,
  text: string,
  logprobs: ReadonlyArray<TokenLogprob> | undefined
): TextDelta =>
  logprobs === undefined || logprobs.length === 0
    ? { type: "delta", choice, kind, text }
    : { type: "delta", choice, kind, text, logprobs }

export const toolCallDelta = (
  choice: number,
  index: number,
  id: string,
  name: string,
  args: string
): DeltaEvent => {
  const delta: Mutable<Extract<DeltaEvent, { kind: "tool_call" }>> = {
    type: "delta",
    choice,
    kind: "tool_call",
    index,
    arguments: args
  }
  if (id !== "") delta.id = id
  if (name !== "") delta.name = name
  return delta
}

/** A channel that this version does not know reads as stdout: nothing that a process said is lost. */
export const outputDelta = (choice: number, channel: number, text: string): DeltaEvent => ({
  type: "delta",
  choice,
  kind: "output",
  channel: channel === 2 ? "stderr" : "stdout",
  text
})

export const embeddingDelta = (choice: number, index: number, values: ReadonlyArray<number>): DeltaEvent => ({
  type: "delta",
  choice,
  kind: "embedding",
  index,
  values
})

/**
 * An event, or content of a delta, that this version does not know. It still has its seq, so it reads as a delta
 * that brings nothing.
 */
export const unknownEvent = (choice: number): DeltaEvent => ({
  type: "delta",
  choice,
  kind: "text",
  text: ""
})

export const tokenLogprob = (
  token: string,
  logprob: number,
  bytes: Uint8Array | undefined,
  top: ReadonlyArray<TokenLogprob> | undefined
): TokenLogprob => {
  const made: Mutable<TokenLogprob> = { token, logprob }
  // A copy: the bytes are a window on the frame, which is a window on what the socket read.
  if (bytes !== undefined && bytes.length > 0) made.bytes = bytes.slice()
  if (top !== undefined && top.length > 0) made.top = top
  return made
}

export const tokenUsage = (
  input: number | undefined,
  output: number | undefined,
  cached: number | undefined,
  reasoning: number | undefined
): TokenUsage => {
  const usage: Mutable<TokenUsage> = {}
  if (input !== undefined) usage.inputTokens = input
  if (output !== undefined) usage.outputTokens = output
  if (cached !== undefined) usage.cachedInputTokens = cached
  if (reasoning !== undefined) usage.reasoningTokens = reasoning
  return usage
}

/** An unknown reason becomes "stop"; what it was stays in `rawFinishReason`. */
export const completedEvent = (
  reason: number,
  usage: TokenUsage | undefined,
  choices: Readonly<Record<number, number>> | undefined,
  raw: string
): CompletedEvent => {
  const known = finishReasons[reason]
  const event: Mutable<CompletedEvent> = { type: "completed", finishReason: known ?? "stop" }
  if (usage !== undefined) event.usage = usage
  if (choices !== undefined) {
    const named: Record<number, FinishReason> = {}
    let any = false
    for (const [choice, number] of Object.entries(choices)) {
      named[Number(choice)] = finishReasons[number] ?? "stop"
      any = true
    }
    if (any) event.choiceFinishReasons = named
  }
  if (raw !== "") event.rawFinishReason = cut(raw, MAX_WORD_LENGTH)
  else if (known === undefined && reason !== 0) event.rawFinishReason = `unknown finish reason ${reason}`
  return event
}

/** An unknown code becomes "adapter_error"; what it was stays in `backendCode`, unless the backend had one. */
export const failedEvent = (
  code: number,
  message: string,
  retryable: boolean,
  backendStatus: number,
  backendCode: string,
  retryAfterMs: number
): NodeFailedEvent => {
  const known = failureCodes[code]
  const event: Mutable<NodeFailedEvent> = {
    type: "failed",
    code: known ?? "adapter_error",
    message: cut(message, MAX_MESSAGE_LENGTH),
    retryable
  }
  if (backendStatus !== 0) event.backendStatus = backendStatus
  if (backendCode !== "") event.backendCode = cut(backendCode, MAX_WORD_LENGTH)
  else if (known === undefined && code !== 0) event.backendCode = `unknown failure code ${code}`
  if (retryAfterMs !== 0) event.retryAfterMs = retryAfterMs
  return event
}

export const cancelledEvent = (reason: string): CancelledEvent => ({
  type: "cancelled",
  reason: cut(reason, MAX_MESSAGE_LENGTH)
})
