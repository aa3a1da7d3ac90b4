import { create, toBinary } from "@bufbuild/protobuf"
import { BinaryWriter } from "@bufbuild/protobuf/wire"
import { assert, describe, it } from "@effect/vitest"
import { NodeFrameSchema } from "../gen/iop/v1/frame_pb.ts"
import { decodeRunEventFrame } from "./decodeRunEvent.ts"
import { MAX_EMBEDDING_VALUES, MAX_LOGPROBS, MAX_MESSAGE_LENGTH, MAX_WORD_LENGTH } from "./limits.ts"
import { decodeNodeFrame } from "./nodeFrameWire.ts"
import type { NodeRunEvent } from "./RunEvent.ts"
import { encodeRunEventFrame } from "./runEventWire.ts"
import { arbitraryBrokenRunEvent, arbitraryRunEvent, arbitraryUint32 } from "./testing/arbitraryRunEvent.ts"
import { runEventFrameByLibrary } from "./testing/runEventToMessage.ts"

const arbitrary = { runs: 2000 }

const decoded = (bytes: Uint8Array): NodeRunEvent => {
  const frame = decodeNodeFrame(bytes)
  assert(frame.kind === "run_event")
  return frame.event
}

/** The value with each lone surrogate in it replaced. */
const repaired = (value: unknown): unknown => {
  if (typeof value === "string") return value.toWellFormed()
  if (Array.isArray(value)) return value.map(repaired)
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, repaired(item)]))
}

/** The frame of a text delta with a field that no version has, so that it is read the slow way. */
const withUnknownField = (bytes: Uint8Array): Uint8Array => Uint8Array.from([...bytes, 0xc0, 0x3e, 1])

describe("the bytes of a run event", () => {
  it.prop(
    "are those of protobuf-es",
    { handle: arbitraryUint32, seq: arbitraryUint32, event: arbitraryBrokenRunEvent },
    ({ handle, seq, event }) => {
      assert.deepStrictEqual(
        encodeRunEventFrame(handle, seq, event),
        runEventFrameByLibrary(handle, seq, event)
      )
    },
    { arbitrary }
  )

  it.prop(
    "decode to the event that was encoded",
    { handle: arbitraryUint32, seq: arbitraryUint32, event: arbitraryRunEvent },
    ({ handle, seq, event }) => {
      assert.deepStrictEqual(decodeNodeFrame(encodeRunEventFrame(handle, seq, event)), {
        kind: "run_event",
        handle,
        seq,
        event,
        unknownFields: 0
      })
    },
    { arbitrary }
  )

  it.prop(
    "hold U+FFFD for each lone surrogate",
    { event: arbitraryBrokenRunEvent },
    ({ event }) => {
      assert.deepStrictEqual(decoded(encodeRunEventFrame(1, 1, event)), repaired(event))
    },
    { arbitrary }
  )

  it.prop(
    "are read by hand unless further choices have reasons",
    { event: arbitraryRunEvent },
    ({ event }) => {
      const byHand = decodeRunEventFrame(encodeRunEventFrame(7, 9, event))
      if (event.type === "completed" && event.choiceFinishReasons !== undefined) {
        assert.strictEqual(byHand, undefined)
      } else {
        assert.deepStrictEqual(byHand, { handle: 7, seq: 9, event })
      }
    },
    { arbitrary }
  )

  it.prop(
    "mean the same the slow way",
    { event: arbitraryRunEvent },
    ({ event }) => {
      const slow = withUnknownField(encodeRunEventFrame(7, 9, event))
      assert.strictEqual(decodeRunEventFrame(slow), undefined)
      assert.deepStrictEqual(decodeNodeFrame(slow), {
        kind: "run_event",
        handle: 7,
        seq: 9,
        event,
        unknownFields: 1
      })
    },
    { arbitrary }
  )
})

describe("plain text", () => {
  it("is the same at every length around the limits of the ways to write it", () => {
    for (const unit of ["a", "é", "안", "👩", "\ud800"]) {
      for (const length of [
        0, 1, 31, 32, 33, 42, 43, 127, 128, 682, 683, 1023, 1024, 2047, 2048, 2049, 6000
      ]) {
        for (const kind of ["text", "reasoning", "refusal"] as const) {
          const text = unit.repeat(length / unit.length)
          const event: NodeRunEvent = { type: "delta", choice: length % 2, kind, text }
          assert.deepStrictEqual(encodeRunEventFrame(300, 1, event), runEventFrameByLibrary(300, 1, event))
        }
      }
    }
  })

  it("leaves earlier frames as they were, over more than the memory that frames share", () => {
    const events = Array.from({ length: 500 }, (_, index): NodeRunEvent => {
      return { type: "delta", choice: 0, kind: "text", text: `${index} ${"가x".repeat(index % 60)}` }
    })
    const frames = events.map((event, index) => encodeRunEventFrame(1, index, event))
    assert.deepStrictEqual(frames.map(decoded), events)
  })

  it("refuses numbers that are no unsigned integers", () => {
    const event: NodeRunEvent = { type: "delta", choice: 0, kind: "text", text: "a" }
    for (const bad of [-1, 1.5, 2 ** 32, Number.NaN]) {
      assert.throws(() => encodeRunEventFrame(bad, 1, event), RangeError)
      assert.throws(() => encodeRunEventFrame(1, bad, event), RangeError)
      assert.throws(() => encodeRunEventFrame(1, 1, { ...event, choice: bad }), RangeError)
      assert.throws(() => encodeRunEventFrame(bad, 1, { type: "started" }), RangeError)
    }
    assert.deepStrictEqual(
      encodeRunEventFrame(1, 1, { type: "started" }),
      runEventFrameByLibrary(1, 1, { type: "started" })
    )
  })
})

describe("what cannot be sent as it is", () => {
  it("cuts messages and words, never within a pair", () => {
    const long = `${"x".repeat(MAX_MESSAGE_LENGTH - 1)}👩 and more`
    const event = decoded(
      encodeRunEventFrame(1, 1, {
        type: "failed",
        code: "adapter_error",
        message: long,
        retryable: false,
        backendCode: "y".repeat(MAX_WORD_LENGTH + 1)
      })
    )
    assert.deepStrictEqual(event, {
      type: "failed",
      code: "adapter_error",
      message: "x".repeat(MAX_MESSAGE_LENGTH - 1),
      retryable: false,
      backendCode: "y".repeat(MAX_WORD_LENGTH)
    })
  })

  it("cuts what another implementation did not cut", () => {
    const bytes = runEventFrameByLibrary(1, 1, {
      type: "cancelled",
      reason: "z".repeat(MAX_MESSAGE_LENGTH + 5)
    })
    assert.deepStrictEqual(decoded(bytes), { type: "cancelled", reason: "z".repeat(MAX_MESSAGE_LENGTH) })
  })

  it("makes counts of the figures of a backend, and leaves out what is none", () => {
    const usage = {
      inputTokens: 12.9,
      outputTokens: 1e12,
      cachedInputTokens: -1,
      reasoningTokens: Number.NaN
    }
    assert.deepStrictEqual(decoded(encodeRunEventFrame(1, 1, { type: "usage", usage })), {
      type: "usage",
      usage: { inputTokens: 12, outputTokens: 0xffff_ffff }
    })
    const failed = { type: "failed", code: "timeout", message: "m", retryable: true } as const
    assert.deepStrictEqual(
      decoded(encodeRunEventFrame(1, 1, { ...failed, backendStatus: -5, retryAfterMs: 1500.5 })),
      { ...failed, retryAfterMs: 1500 }
    )
  })

  it("makes a double that no float can hold infinite", () => {
    const event = { type: "delta", choice: 0, kind: "embedding", index: 0 } as const
    assert.deepStrictEqual(decoded(encodeRunEventFrame(1, 1, { ...event, values: [1e300, -1e300, 0.5] })), {
      ...event,
      values: [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0.5]
    })
  })

  it("refuses a handle that is no unsigned integer, and leaves nothing of it in the next frame", () => {
    const event: NodeRunEvent = { type: "delta", choice: 0, kind: "text", text: "a" }
    assert.throws(() => encodeRunEventFrame(1, 2 ** 32, event), RangeError)
    assert.throws(() => encodeRunEventFrame(1, 1, { ...event, choice: -1 }), RangeError)
    assert.deepStrictEqual(encodeRunEventFrame(1, 1, event), runEventFrameByLibrary(1, 1, event))
  })

  it("writes small events after one of a mebibyte", () => {
    const small: NodeRunEvent = { type: "delta", choice: 0, kind: "text", text: "a" }
    const large: NodeRunEvent = { type: "delta", choice: 0, kind: "text", text: "가".repeat(349_000) }
    assert.deepStrictEqual(decoded(encodeRunEventFrame(1, 1, large)), large)
    assert.deepStrictEqual(encodeRunEventFrame(1, 2, small), runEventFrameByLibrary(1, 2, small))
  })
})

describe("values of a newer version", () => {
  const event = (body: (writer: BinaryWriter) => void): Uint8Array => {
    const writer = new BinaryWriter().uint32((4 << 3) | 2).fork()
    writer.uint32(8).uint32(3).uint32(16).uint32(4)
    body(writer)
    return writer.join().finish()
  }

  it("EV11 maps an unknown finish reason to stop and keeps it", () => {
    const completed = event((writer) =>
      writer
        .uint32((6 << 3) | 2)
        .fork()
        .uint32(8)
        .uint32(17)
        .join()
    )
    assert.deepStrictEqual(decoded(completed), {
      type: "completed",
      finishReason: "stop",
      rawFinishReason: "unknown finish reason 17"
    })
    const withWord = event((writer) =>
      writer
        .uint32((6 << 3) | 2)
        .fork()
        .uint32(8)
        .uint32(17)
        .uint32((4 << 3) | 2)
        .string("w".repeat(300))
        .join()
    )
    assert.deepStrictEqual(decoded(withWord), {
      type: "completed",
      finishReason: "stop",
      rawFinishReason: "w".repeat(MAX_WORD_LENGTH)
    })
  })

  it("EV11 maps an unknown failure code to adapter_error and keeps it", () => {
    const failed = event((writer) =>
      writer
        .uint32((7 << 3) | 2)
        .fork()
        .uint32(8)
        .uint32(99)
        .join()
    )
    assert.deepStrictEqual(decoded(failed), {
      type: "failed",
      code: "adapter_error",
      message: "",
      retryable: false,
      backendCode: "unknown failure code 99"
    })
  })

  it("EV11 maps a negative enum value like any unknown one", () => {
    const completed = event((writer) =>
      writer
        .uint32((6 << 3) | 2)
        .fork()
        .uint32(8)
        .int32(-1)
        .join()
    )
    assert.deepStrictEqual(decoded(completed), {
      type: "completed",
      finishReason: "stop",
      rawFinishReason: "unknown finish reason -1"
    })
  })

  it("reads an unset finish reason and failure code as the plain ones", () => {
    assert.deepStrictEqual(decoded(event((writer) => writer.uint32((6 << 3) | 2).uint32(0))), {
      type: "completed",
      finishReason: "stop"
    })
    assert.deepStrictEqual(decoded(event((writer) => writer.uint32((7 << 3) | 2).uint32(0))), {
      type: "failed",
      code: "adapter_error",
      message: "",
      retryable: false
    })
  })

  it("reads an unknown channel as stdout", () => {
    const output = event((writer) =>
      writer
        .uint32((4 << 3) | 2)
        .fork()
        .uint32((6 << 3) | 2)
        .fork()
        .uint32(8)
        .uint32(9)
        .join()
        .join()
    )
    assert.deepStrictEqual(decoded(output), {
      type: "delta",
      choice: 0,
      kind: "output",
      channel: "stdout",
      text: ""
    })
  })

  it("reads an event and a delta of an unknown kind as an empty delta, because the seq counts", () => {
    const unknownEvent = event((writer) => writer.uint32((14 << 3) | 2).string("new"))
    assert.deepStrictEqual(decodeNodeFrame(unknownEvent), {
      kind: "run_event",
      handle: 3,
      seq: 4,
      event: { type: "delta", choice: 0, kind: "text", text: "" },
      unknownFields: 1
    })
    const unknownContent = event((writer) =>
      writer
        .uint32((4 << 3) | 2)
        .fork()
        .uint32(8)
        .uint32(2)
        .uint32((14 << 3) | 2)
        .string("new")
        .join()
    )
    assert.deepStrictEqual(decoded(unknownContent), { type: "delta", choice: 2, kind: "text", text: "" })
  })
})

describe("frames that are legal but not canonical", () => {
  it("takes fields in any order and the last of several", () => {
    const frame = new BinaryWriter()
      .uint32((4 << 3) | 2)
      .fork()
      .uint32((4 << 3) | 2)
      .fork()
      .uint32((2 << 3) | 2)
      .string("first")
      .uint32((2 << 3) | 2)
      .string("last")
      .uint32(8)
      .uint32(1)
      .join()
      .uint32(16)
      .uint32(5)
      .uint32(8)
      .uint32(1)
      .uint32(8)
      .uint32(6)
      .join()
      .finish()
    assert.strictEqual(decodeRunEventFrame(frame), undefined)
    assert.deepStrictEqual(decodeNodeFrame(frame), {
      kind: "run_event",
      handle: 6,
      seq: 5,
      event: { type: "delta", choice: 1, kind: "text", text: "last" },
      unknownFields: 0
    })
  })

  it("merges a message that comes twice", () => {
    const first = encodeRunEventFrame(1, 2, { type: "usage", usage: { inputTokens: 3 } })
    const second = encodeRunEventFrame(1, 2, { type: "usage", usage: { outputTokens: 4 } })
    assert.deepStrictEqual(decoded(Uint8Array.from([...first, ...second])), {
      type: "usage",
      usage: { inputTokens: 3, outputTokens: 4 }
    })
  })

  it("takes the last of several bodies", () => {
    const event = encodeRunEventFrame(1, 2, { type: "started" })
    const pong = toBinary(
      NodeFrameSchema,
      create(NodeFrameSchema, { body: { case: "pong", value: { nonce: 8 } } })
    )
    assert.deepStrictEqual(decodeNodeFrame(Uint8Array.from([...event, ...pong])), {
      kind: "pong",
      nonce: 8,
      unknownFields: 0
    })
    assert.deepStrictEqual(decoded(Uint8Array.from([...pong, ...event])), { type: "started" })
  })
})

describe("bounds of an event", () => {
  it("takes the most values of a vector and refuses one more", () => {
    const event = { type: "delta", choice: 0, kind: "embedding", index: 0 } as const
    const most = encodeRunEventFrame(1, 1, { ...event, values: new Array(MAX_EMBEDDING_VALUES).fill(0.5) })
    assert.strictEqual(decodeRunEventFrame(most) !== undefined, true)
    const more = encodeRunEventFrame(1, 1, {
      ...event,
      values: new Array(MAX_EMBEDDING_VALUES + 1).fill(0.5)
    })
    assert.throws(() => decodeNodeFrame(more), /at most 65536/)
  })

  it("takes the most log probabilities and refuses one more", () => {
    const event = { type: "delta", choice: 0, kind: "text", text: "" } as const
    const token = { token: "a", logprob: -1 }
    const most = encodeRunEventFrame(1, 1, { ...event, logprobs: new Array(MAX_LOGPROBS).fill(token) })
    assert.strictEqual(decodeRunEventFrame(most) !== undefined, true)
    const more = encodeRunEventFrame(1, 1, { ...event, logprobs: new Array(MAX_LOGPROBS + 1).fill(token) })
    assert.throws(() => decodeNodeFrame(more), /iop\.v1\.Delta\.logprobs: at most 32768/)
  })

  it("keeps nothing of the frame that it was read from", () => {
    const bytes = encodeRunEventFrame(1, 1, {
      type: "delta",
      choice: 0,
      kind: "text",
      text: "a",
      logprobs: [{ token: "a", logprob: -1, bytes: Uint8Array.of(97) }]
    })
    for (const read of [bytes, withUnknownField(bytes)]) {
      const event = decoded(read)
      read.fill(0)
      assert(event.type === "delta" && event.kind === "text")
      assert.deepStrictEqual(event.logprobs?.[0]?.bytes, Uint8Array.of(97))
    }
  })
})
