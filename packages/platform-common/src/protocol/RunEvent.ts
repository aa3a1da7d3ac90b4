// The events of a run as plain values: what an adapter yields, what the edge relays and what its surfaces
// print. The wire form is made and read by `runEventWire.ts`; nothing else converts between the two.

/** Why an answer ended. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

/** Tokens of a run. What the backend did not say is absent, never 0. */
export interface TokenUsage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly cachedInputTokens?: number
  readonly reasoningTokens?: number
}

/** A token and its log probability; `bytes` is its UTF-8 form where the backend gave it. */
export interface TokenLogprob {
  readonly token: string
  readonly logprob: number
  readonly bytes?: Uint8Array
  readonly top?: ReadonlyArray<{
    readonly token: string
    readonly logprob: number
    readonly bytes?: Uint8Array
  }>
}

/** The adapter works on the run. */
export interface StartedEvent {
  readonly type: "started"
  /** What the backend calls the target, where it says so. */
  readonly backendTarget?: string
}

interface DeltaBase {
  readonly type: "delta"
  /** Which of several answers this belongs to, from 0. */
  readonly choice: number
}

/** A piece of the answer, of the thinking, or of a refusal. */
export interface TextDelta extends DeltaBase {
  readonly kind: "text" | "reasoning" | "refusal"
  readonly text: string
  readonly logprobs?: ReadonlyArray<TokenLogprob>
}

/** A piece of a tool call. Pieces of one `index` belong together; `id` and `name` come once, in the first. */
export interface ToolCallDelta extends DeltaBase {
  readonly kind: "tool_call"
  readonly index: number
  readonly id?: string
  readonly name?: string
  /** The next piece of the JSON text. */
  readonly arguments: string
}

/** Output of a process. */
export interface ProcessOutputDelta extends DeltaBase {
  readonly kind: "output"
  readonly channel: "stdout" | "stderr"
  readonly text: string
}

/** One vector; `index` is the item of the input that it belongs to. */
export interface EmbeddingDelta extends DeltaBase {
  readonly kind: "embedding"
  readonly index: number
  readonly values: ReadonlyArray<number>
}

export type DeltaEvent = TextDelta | ToolCallDelta | ProcessOutputDelta | EmbeddingDelta

/** Tokens so far; a later one replaces an earlier one. */
export interface UsageEvent {
  readonly type: "usage"
  readonly usage: TokenUsage
}

/** The run ended well. */
export interface CompletedEvent {
  readonly type: "completed"
  readonly finishReason: FinishReason
  readonly usage?: TokenUsage
  /** Finish reasons of further choices, where they differ, by choice. */
  readonly choiceFinishReasons?: Readonly<Record<number, FinishReason>>
  /** The reason in the backend's own word, where it is none of the known ones. */
  readonly rawFinishReason?: string
}

/** Why a run failed at a node, in the protocol's words. */
export type NodeFailureCode =
  | "adapter_error"
  | "rejected"
  | "invalid_input"
  | "timeout"
  | "limit"
  | "internal"

/** The run failed at the node. */
export interface NodeFailedEvent {
  readonly type: "failed"
  readonly code: NodeFailureCode
  /** For a person. */
  readonly message: string
  /** Whether the same run may succeed on another attempt. */
  readonly retryable: boolean
  /** The backend's HTTP status. */
  readonly backendStatus?: number
  readonly backendCode?: string
  readonly retryAfterMs?: number
}

/** The run was stopped as asked. */
export interface CancelledEvent {
  readonly type: "cancelled"
  readonly reason: string
}

/** What a node sends about a run. */
export type NodeRunEvent =
  | StartedEvent
  | DeltaEvent
  | UsageEvent
  | CompletedEvent
  | NodeFailedEvent
  | CancelledEvent

/** Whether nothing may follow the event. */
export const isTerminal = (event: {
  readonly type: string
}): event is CompletedEvent | NodeFailedEvent | CancelledEvent =>
  event.type === "completed" || event.type === "failed" || event.type === "cancelled"
