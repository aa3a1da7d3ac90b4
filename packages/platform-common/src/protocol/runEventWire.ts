// The hot path of a node: one event of a run as the bytes of its NodeFrame, written without a message object. The
// bytes are those that protobuf-es would write, in the order of the field numbers.

import { BinaryWriter } from "@bufbuild/protobuf/wire"
import { encodeTextDelta, MAX_IN_PLACE_LENGTH } from "./encodeTextDelta.ts"
import { MAX_MESSAGE_LENGTH, MAX_WORD_LENGTH } from "./limits.ts"
import type { DeltaEvent, NodeRunEvent, TextDelta, TokenLogprob, TokenUsage } from "./RunEvent.ts"
import { cut, failureCodeNumber, finishReasonNumber } from "./runEventParts.ts"

// Tags: field number << 3 | wire type (0 varint, 1 64 bit, 2 length-delimited).
const FRAME_RUN_EVENT = (4 << 3) | 2

/** The tags of texts in Delta. */
const TEXT_TAGS = { text: (2 << 3) | 2, reasoning: (3 << 3) | 2, refusal: (4 << 3) | 2 } as const

const UINT32_MAX = 0xffff_ffff

/** A buffer that grew beyond this for one large event is not kept for the small ones that follow. */
const KEPT_BUFFER_BYTES = 65_536

let writer = new BinaryWriter()

/**
 * One event as the bytes of a NodeFrame, without the length that goes before them on the wire.
 *
 * Lone surrogates become U+FFFD. Messages and reasons are cut at `MAX_MESSAGE_LENGTH`, words of the backend at
 * `MAX_WORD_LENGTH`. Token counts that are no counts (negative, not a number) are left out. Throws a `RangeError`
 * if `handle`, `seq`, a choice or an index is not an unsigned 32-bit integer. The result may be a window on memory that
 * it shares with other frames: write it, but don't change it or hand on its `buffer`.
 */
export const encodeRunEventFrame = (handle: number, seq: number, event: NodeRunEvent): Uint8Array => {
  if (event.type === "delta" && isPlainText(event)) {
    return encodeTextDelta(handle, seq, TEXT_TAGS[event.kind], event.choice, event.text)
  }
  const target = writer
  try {
    target.uint32(FRAME_RUN_EVENT).fork()
    if (handle !== 0) target.uint32(8).uint32(handle)
    if (seq !== 0) target.uint32(16).uint32(seq)
    writeEvent(target, event)
    const bytes = target.join().finish()
    if (bytes.length > KEPT_BUFFER_BYTES) writer = new BinaryWriter()
    return bytes
  } catch (cause) {
    // What was written so far must not become the beginning of the next event.
    writer = new BinaryWriter()
    throw new RangeError(`event ${seq} of handle ${handle} cannot be encoded: a number is out of range`, {
      cause
    })
  }
}

type PlainText = TextDelta & { readonly logprobs?: never }

const isPlainText = (delta: DeltaEvent): delta is PlainText =>
  (delta.kind === "text" || delta.kind === "reasoning" || delta.kind === "refusal") &&
  delta.logprobs === undefined &&
  delta.text.length <= MAX_IN_PLACE_LENGTH

const writeEvent = (target: BinaryWriter, event: NodeRunEvent): void => {
  switch (event.type) {
    case "delta":
      target.uint32((4 << 3) | 2).fork()
      writeDelta(target, event)
      target.join()
      return
    case "started":
      target.uint32((3 << 3) | 2).fork()
      writeWord(target, (1 << 3) | 2, event.backendTarget)
      target.join()
      return
    case "usage":
      writeUsage(target, (5 << 3) | 2, event.usage)
      return
    case "completed":
      target.uint32((6 << 3) | 2).fork()
      target.uint32(1 << 3).uint32(finishReasonNumber(event.finishReason))
      if (event.usage !== undefined) writeUsage(target, (2 << 3) | 2, event.usage)
      if (event.choiceFinishReasons !== undefined) {
        for (const [choice, reason] of Object.entries(event.choiceFinishReasons)) {
          target.uint32((3 << 3) | 2).fork()
          target.uint32(1 << 3).uint32(Number(choice))
          target.uint32(2 << 3).uint32(finishReasonNumber(reason))
          target.join()
        }
      }
      writeWord(target, (4 << 3) | 2, event.rawFinishReason)
      target.join()
      return
    case "failed":
      target.uint32((7 << 3) | 2).fork()
      target.uint32(1 << 3).uint32(failureCodeNumber(event.code))
      writeText(target, (2 << 3) | 2, cut(event.message, MAX_MESSAGE_LENGTH))
      if (event.retryable) target.uint32(3 << 3).bool(true)
      writeCount(target, 4 << 3, event.backendStatus)
      writeWord(target, (5 << 3) | 2, event.backendCode)
      writeCount(target, 6 << 3, event.retryAfterMs)
      target.join()
      return
    case "cancelled":
      target.uint32((8 << 3) | 2).fork()
      writeText(target, (1 << 3) | 2, cut(event.reason, MAX_MESSAGE_LENGTH))
      target.join()
      return
  }
}

const writeDelta = (target: BinaryWriter, delta: DeltaEvent): void => {
  if (delta.choice !== 0) target.uint32(1 << 3).uint32(delta.choice)
  switch (delta.kind) {
    case "text":
    case "reasoning":
    case "refusal":
      // A member of a oneof is written even when it is empty: that it is there is what it says.
      target.uint32(TEXT_TAGS[delta.kind]).string(delta.text)
      break
    case "tool_call":
      target.uint32((5 << 3) | 2).fork()
      if (delta.index !== 0) target.uint32(1 << 3).uint32(delta.index)
      writeText(target, (2 << 3) | 2, delta.id)
      writeText(target, (3 << 3) | 2, delta.name)
      writeText(target, (4 << 3) | 2, delta.arguments)
      target.join()
      return
    case "output":
      target.uint32((6 << 3) | 2).fork()
      target.uint32(1 << 3).uint32(delta.channel === "stderr" ? 2 : 1)
      writeText(target, (2 << 3) | 2, delta.text)
      target.join()
      return
    case "embedding":
      target.uint32((7 << 3) | 2).fork()
      if (delta.index !== 0) target.uint32(1 << 3).uint32(delta.index)
      if (delta.values.length > 0) {
        target.uint32((2 << 3) | 2).fork()
        // Rounded first: a double that no float can hold becomes infinite instead of an error.
        for (const value of delta.values) target.float(Math.fround(value))
        target.join()
      }
      target.join()
      return
  }
  if (delta.logprobs !== undefined) {
    for (const logprob of delta.logprobs) writeLogprob(target, (8 << 3) | 2, logprob)
  }
}

const writeLogprob = (target: BinaryWriter, tag: number, logprob: TokenLogprob): void => {
  target.uint32(tag).fork()
  writeText(target, (1 << 3) | 2, logprob.token)
  if (!Object.is(logprob.logprob, 0)) target.uint32((2 << 3) | 1).double(logprob.logprob)
  if (logprob.bytes !== undefined && logprob.bytes.length > 0) {
    target.uint32((3 << 3) | 2).bytes(logprob.bytes)
  }
  if (logprob.top !== undefined) {
    for (const top of logprob.top) writeLogprob(target, (4 << 3) | 2, top)
  }
  target.join()
}

const writeUsage = (target: BinaryWriter, tag: number, usage: TokenUsage): void => {
  target.uint32(tag).fork()
  writeOptionalCount(target, 1 << 3, usage.inputTokens)
  writeOptionalCount(target, 2 << 3, usage.outputTokens)
  writeOptionalCount(target, 3 << 3, usage.cachedInputTokens)
  writeOptionalCount(target, 4 << 3, usage.reasoningTokens)
  target.join()
}

/** Writes a count that is 0 when absent. */
const writeCount = (target: BinaryWriter, tag: number, value: number | undefined): void => {
  if (value !== undefined && value >= 1) target.uint32(tag).uint32(wholeUint32(value))
}

/** Writes a count whose absence says that it is not known. */
const writeOptionalCount = (target: BinaryWriter, tag: number, value: number | undefined): void => {
  if (value !== undefined && value >= 0) target.uint32(tag).uint32(wholeUint32(value))
}

/** Backends report what they like, 1.5 and 1e12 included; a figure of theirs must not fail the run. */
const wholeUint32 = (value: number): number => (value >= UINT32_MAX ? UINT32_MAX : Math.trunc(value))

const writeText = (target: BinaryWriter, tag: number, text: string | undefined): void => {
  if (text !== undefined && text !== "") target.uint32(tag).string(text)
}

const writeWord = (target: BinaryWriter, tag: number, word: string | undefined): void => {
  if (word !== undefined && word !== "") target.uint32(tag).string(cut(word, MAX_WORD_LENGTH))
}
