// The hot path of the edge: a run event read without message objects. It reads canonical frames only (each field
// once, in the order of the numbers, none unknown) and answers undefined for all others, wrong ones included, which
// then take the slow way. So there is one place that says what is wrong with a frame, and it is not this one.

import { BinaryReader } from "@bufbuild/protobuf/wire"
import { MAX_EMBEDDING_VALUES, MAX_LOGPROBS } from "./limits.ts"
import type { DeltaEvent, NodeRunEvent, TextDelta, TokenLogprob, TokenUsage } from "./RunEvent.ts"
import {
  cancelledEvent,
  completedEvent,
  embeddingDelta,
  failedEvent,
  outputDelta,
  startedEvent,
  textDelta,
  tokenLogprob,
  tokenUsage,
  toolCallDelta
} from "./runEventParts.ts"

/** An event and whose it is. */
export interface NumberedRunEvent {
  /** The run's handle on its link. */
  readonly handle: number
  /** Its number in the attempt, from 1. */
  readonly seq: number
  readonly event: NodeRunEvent
}

/** Thrown for what this decoder leaves to the slow way; one object, so that it costs no stack. */
const UNUSUAL = new Error("not a canonical run event")

/** The event of a NodeFrame whose bytes are a canonical run event; undefined for any other bytes. */
export const decodeRunEventFrame = (bytes: Uint8Array): NumberedRunEvent | undefined => {
  if (bytes[0] !== ((4 << 3) | 2)) return undefined
  try {
    const reader = new BinaryReader(bytes)
    reader.pos = 1
    if (enter(reader, bytes.length) !== bytes.length) return undefined
    return readRunEvent(reader, bytes.length)
  } catch {
    return undefined
  }
}

const readRunEvent = (reader: BinaryReader, end: number): NumberedRunEvent => {
  let handle = 0
  let seq = 0
  let event: NodeRunEvent | undefined
  let last = 0
  while (reader.pos < end) {
    const tag = readTag(reader)
    if (event !== undefined || tag <= last) throw UNUSUAL
    last = tag
    switch (tag) {
      case 1 << 3:
        handle = reader.uint32()
        break
      case 2 << 3:
        seq = reader.uint32()
        break
      case (3 << 3) | 2:
        event = startedEvent(readOnlyString(reader, end))
        break
      case (4 << 3) | 2:
        event = readDelta(reader, enter(reader, end))
        break
      case (5 << 3) | 2:
        event = { type: "usage", usage: readUsage(reader, enter(reader, end)) }
        break
      case (6 << 3) | 2:
        event = readCompleted(reader, enter(reader, end))
        break
      case (7 << 3) | 2:
        event = readFailed(reader, enter(reader, end))
        break
      case (8 << 3) | 2:
        event = cancelledEvent(readOnlyString(reader, end))
        break
      default:
        throw UNUSUAL
    }
  }
  leave(reader, end)
  if (event === undefined) throw UNUSUAL
  return { handle, seq, event }
}

/** Reads a tag: one byte for every field of this message. */
const readTag = (reader: BinaryReader): number => {
  const start = reader.pos
  const tag = reader.uint32()
  if (reader.pos !== start + 1) throw UNUSUAL
  return tag
}

/** Reads the length of a nested message; answers where it ends. */
const enter = (reader: BinaryReader, outerEnd: number): number => {
  const length = reader.uint32()
  const end = reader.pos + length
  if (end > outerEnd) throw UNUSUAL
  return end
}

/** A value that ran over the end of its message took bytes of the next one. */
const leave = (reader: BinaryReader, end: number): void => {
  if (reader.pos !== end) throw UNUSUAL
}

/** The number of an optional enum: not negative, so that both ways see the same. */
const readEnum = (reader: BinaryReader): number => {
  const value = reader.uint32()
  if (value > 0x7fff_ffff) throw UNUSUAL
  return value
}

/** Reads a nested message whose only field is the string 1. */
const readOnlyString = (reader: BinaryReader, outerEnd: number): string => {
  const end = enter(reader, outerEnd)
  if (reader.pos === end) return ""
  if (readTag(reader) !== ((1 << 3) | 2)) throw UNUSUAL
  const text = reader.string(true)
  leave(reader, end)
  return text
}

const readDelta = (reader: BinaryReader, end: number): DeltaEvent => {
  let choice = 0
  let content = 0
  let kind: TextDelta["kind"] = "text"
  let text = ""
  let other: DeltaEvent | undefined
  let logprobs: Array<TokenLogprob> | undefined
  let budget = MAX_LOGPROBS
  let last = 0
  while (reader.pos < end) {
    const tag = readTag(reader)
    if (tag === ((8 << 3) | 2)) {
      logprobs ??= []
      budget = readLogprob(reader, enter(reader, end), logprobs, budget)
      last = tag
      continue
    }
    if (tag <= last) throw UNUSUAL
    last = tag
    if (tag === 1 << 3) {
      choice = reader.uint32()
      continue
    }
    if (content !== 0) throw UNUSUAL
    content = tag
    switch (tag) {
      case (2 << 3) | 2:
        text = reader.string(true)
        break
      case (3 << 3) | 2:
        kind = "reasoning"
        text = reader.string(true)
        break
      case (4 << 3) | 2:
        kind = "refusal"
        text = reader.string(true)
        break
      case (5 << 3) | 2:
        other = readToolCall(reader, enter(reader, end), choice)
        break
      case (6 << 3) | 2:
        other = readOutput(reader, enter(reader, end), choice)
        break
      case (7 << 3) | 2:
        other = readEmbedding(reader, enter(reader, end), choice)
        break
      default:
        throw UNUSUAL
    }
  }
  leave(reader, end)
  if (content === 0) throw UNUSUAL
  return other ?? textDelta(kind, choice, text, logprobs)
}

const readToolCall = (reader: BinaryReader, end: number, choice: number): DeltaEvent => {
  let index = 0
  let id = ""
  let name = ""
  let args = ""
  let last = 0
  while (reader.pos < end) {
    const tag = readTag(reader)
    if (tag <= last) throw UNUSUAL
    last = tag
    if (tag === 1 << 3) index = reader.uint32()
    else if (tag === ((2 << 3) | 2)) id = reader.string(true)
    else if (tag === ((3 << 3) | 2)) name = reader.string(true)
    else if (tag === ((4 << 3) | 2)) args = reader.string(true)
    else throw UNUSUAL
  }
  leave(reader, end)
  return toolCallDelta(choice, index, id, name, args)
}

const readOutput = (reader: BinaryReader, end: number, choice: number): DeltaEvent => {
  let channel = 0
  let text = ""
  let last = 0
  while (reader.pos < end) {
    const tag = readTag(reader)
    if (tag <= last) throw UNUSUAL
    last = tag
    if (tag === 1 << 3) channel = readEnum(reader)
    else if (tag === ((2 << 3) | 2)) text = reader.string(true)
    else throw UNUSUAL
  }
  leave(reader, end)
  return outputDelta(choice, channel, text)
}

const readEmbedding = (reader: BinaryReader, end: number, choice: number): DeltaEvent => {
  let index = 0
  let values: Array<number> = []
  let last = 0
  while (reader.pos < end) {
    const tag = readTag(reader)
    if (tag <= last) throw UNUSUAL
    last = tag
    if (tag === 1 << 3) index = reader.uint32()
    else if (tag === ((2 << 3) | 2)) {
      const length = enter(reader, end) - reader.pos
      const count = length / 4
      if (!Number.isInteger(count) || count > MAX_EMBEDDING_VALUES) throw UNUSUAL
      values = new Array<number>(count)
      for (let at = 0; at < count; at++) values[at] = reader.float()
    } else throw UNUSUAL
  }
  leave(reader, end)
  return embeddingDelta(choice, index, values)
}

/** Reads one token into `into`; answers how many more, alternatives included, the delta may have. */
const readLogprob = (
  reader: BinaryReader,
  end: number,
  into: Array<TokenLogprob>,
  budget: number,
  nested = false
): number => {
  if (budget === 0) throw UNUSUAL
  let left = budget - 1
  let token = ""
  let logprob = 0
  let bytes: Uint8Array | undefined
  let top: Array<TokenLogprob> | undefined
  let last = 0
  while (reader.pos < end) {
    const tag = readTag(reader)
    if (tag === ((4 << 3) | 2) && !nested) {
      top ??= []
      left = readLogprob(reader, enter(reader, end), top, left, true)
      last = tag
      continue
    }
    if (tag <= last) throw UNUSUAL
    last = tag
    if (tag === ((1 << 3) | 2)) token = reader.string(true)
    else if (tag === ((2 << 3) | 1)) logprob = reader.double()
    else if (tag === ((3 << 3) | 2)) bytes = reader.bytes()
    else throw UNUSUAL
  }
  leave(reader, end)
  into.push(tokenLogprob(token, logprob, bytes, top))
  return left
}

const readUsage = (reader: BinaryReader, end: number): TokenUsage => {
  let input: number | undefined
  let output: number | undefined
  let cached: number | undefined
  let reasoning: number | undefined
  let last = 0
  while (reader.pos < end) {
    const tag = readTag(reader)
    if (tag <= last) throw UNUSUAL
    last = tag
    if (tag === 1 << 3) input = reader.uint32()
    else if (tag === 2 << 3) output = reader.uint32()
    else if (tag === 3 << 3) cached = reader.uint32()
    else if (tag === 4 << 3) reasoning = reader.uint32()
    else throw UNUSUAL
  }
  leave(reader, end)
  return tokenUsage(input, output, cached, reasoning)
}

const readCompleted = (reader: BinaryReader, end: number): NodeRunEvent => {
  let reason = 0
  let usage: TokenUsage | undefined
  let raw = ""
  let last = 0
  while (reader.pos < end) {
    const tag = readTag(reader)
    if (tag <= last) throw UNUSUAL
    last = tag
    if (tag === 1 << 3) reason = readEnum(reader)
    else if (tag === ((2 << 3) | 2)) usage = readUsage(reader, enter(reader, end))
    // Field 3, reasons of further choices, is rare and a map: the slow way.
    else if (tag === ((4 << 3) | 2)) raw = reader.string(true)
    else throw UNUSUAL
  }
  leave(reader, end)
  return completedEvent(reason, usage, undefined, raw)
}

const readFailed = (reader: BinaryReader, end: number): NodeRunEvent => {
  let code = 0
  let message = ""
  let retryable = false
  let backendStatus = 0
  let backendCode = ""
  let retryAfterMs = 0
  let last = 0
  while (reader.pos < end) {
    const tag = readTag(reader)
    if (tag <= last) throw UNUSUAL
    last = tag
    if (tag === 1 << 3) code = readEnum(reader)
    else if (tag === ((2 << 3) | 2)) message = reader.string(true)
    else if (tag === 3 << 3) retryable = reader.bool()
    else if (tag === 4 << 3) backendStatus = reader.uint32()
    else if (tag === ((5 << 3) | 2)) backendCode = reader.string(true)
    else if (tag === 6 << 3) retryAfterMs = reader.uint32()
    else throw UNUSUAL
  }
  leave(reader, end)
  return failedEvent(code, message, retryable, backendStatus, backendCode, retryAfterMs)
}
