import { assert, describe, it } from "@effect/vitest"
import type { DeltaEvent, NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { encodeRunEventFrame } from "@iop/platform-common/protocol/runEventWire"
import { Effect, Schema } from "effect"
import { AdapterFailure } from "./Adapter.ts"
import { EventShaper } from "./EventShaper.ts"
import { splitDelta } from "./splitDelta.ts"
import { completed, reasoningDelta, textDelta } from "./textDelta.ts"

const started: NodeRunEvent = { type: "started" }
const failed: NodeRunEvent = { type: "failed", code: "timeout", message: "late", retryable: true }
const usage = (outputTokens: number): NodeRunEvent => ({ type: "usage", usage: { outputTokens } })
const call = (index: number, json: string, name?: string): DeltaEvent => ({
  type: "delta",
  kind: "tool_call",
  choice: 0,
  index,
  arguments: json,
  ...(name === undefined ? {} : { id: `id-${index}`, name })
})

const shape = (stream: boolean, ...chunks: ReadonlyArray<ReadonlyArray<NodeRunEvent>>) => {
  const shaper = new EventShaper({ stream, maxFrameBytes: () => 1024 * 1024, now: () => 0 })
  return chunks.flatMap((events) => shaper.shape(events))
}

describe("a stream", () => {
  it("begins with one started, whoever says it", () => {
    assert.deepStrictEqual(shape(true, [textDelta("a")], [started, textDelta("b")]), [
      started,
      textDelta("a"),
      textDelta("b")
    ])
    assert.deepStrictEqual(shape(true, [{ type: "started", backendTarget: "x" }, started]), [
      { type: "started", backendTarget: "x" }
    ])
    assert.deepStrictEqual(shape(true, [completed]), [started, completed])
  })

  it("does not start what failed before it began", () => {
    assert.deepStrictEqual(shape(true, [failed]), [failed])
    assert.deepStrictEqual(shape(false, [failed]), [failed])
  })

  it("EV7 ends with its first terminal event", () => {
    assert.deepStrictEqual(shape(true, [started, completed, textDelta("late"), failed], [usage(1)]), [
      started,
      completed
    ])
  })
})

describe("half a character", () => {
  const [high, low] = ["😀"[0]!, "😀"[1]!]

  it("waits for its other half, in its own text", () => {
    assert.deepStrictEqual(
      shape(
        true,
        [textDelta(`a${high}`), textDelta(high, 1), reasoningDelta("b")],
        [textDelta(`${low}c`), textDelta("")]
      ),
      [started, textDelta("a"), reasoningDelta("b"), textDelta("😀c"), textDelta("")]
    )
  })

  it("is not lost when the other never comes", () => {
    assert.deepStrictEqual(shape(true, [textDelta("a"), textDelta(high), completed]), [
      started,
      textDelta("a"),
      textDelta(high),
      completed
    ])
  })

  it("is made whole in a whole answer too", () => {
    assert.deepStrictEqual(shape(false, [textDelta(high), textDelta(low), completed]), [
      started,
      textDelta("😀"),
      completed
    ])
  })
})

describe("a whole answer", () => {
  it("is one delta per choice and kind, then the last usage, then the end", () => {
    assert.deepStrictEqual(
      shape(
        false,
        [started, reasoningDelta("hm "), textDelta("a"), textDelta("x", 1), usage(1)],
        [reasoningDelta("so"), textDelta("b"), usage(3), textDelta("y", 1), completed]
      ),
      [started, reasoningDelta("hm so"), textDelta("ab"), textDelta("xy", 1), usage(3), completed]
    )
  })

  it("says that it has started before anything is gathered", () => {
    assert.deepStrictEqual(shape(false, [textDelta("a")]), [started])
  })

  it("joins the pieces of each tool call", () => {
    assert.deepStrictEqual(
      shape(false, [call(0, "", "look"), call(1, "[", "find"), call(0, "{}"), call(1, "]"), completed]),
      [started, call(0, "{}", "look"), call(1, "[]", "find"), completed]
    )
  })

  it("keeps the channels of a process and each vector apart", () => {
    const output = (channel: "stdout" | "stderr", text: string): DeltaEvent => ({
      type: "delta",
      kind: "output",
      choice: 0,
      channel,
      text
    })
    const vector = (index: number): DeltaEvent => ({
      type: "delta",
      kind: "embedding",
      choice: 0,
      index,
      values: [index]
    })
    assert.deepStrictEqual(
      shape(false, [
        output("stdout", "1"),
        output("stderr", "!"),
        output("stdout", "2"),
        vector(0),
        vector(1),
        completed
      ]),
      [started, output("stdout", "12"), output("stderr", "!"), vector(0), vector(1), completed]
    )
  })

  it("gives a sign of life now and then while its backend works, and none while it does not", () => {
    let now = 0
    const shaper = new EventShaper({ stream: false, maxFrameBytes: () => 1024 * 1024, now: () => now })
    const said: Array<NodeRunEvent> = []
    for (const at of [0, 9_999, 10_000, 15_000, 19_999, 20_000]) {
      now = at
      said.push(...shaper.shape([textDelta("a")]))
    }
    now = 300_000
    assert.deepStrictEqual(said, [started, textDelta(""), textDelta("")])
    assert.deepStrictEqual(shaper.shape([completed]), [textDelta("aaaaaa"), completed])
  })

  it("that is too long fails, and says what to do", () => {
    const shaper = new EventShaper({ stream: false, maxFrameBytes: () => 1024 * 1024, now: () => 0 })
    const megabyte = textDelta("x".repeat(1024 * 1024))
    for (let index = 0; index < 16; index++) shaper.shape([megabyte])
    assert.throws(() => shaper.shape([textDelta("x")]), AdapterFailure, /ask for a stream/)
  })
})

describe("a delta that is too large for a frame", () => {
  const Text = Schema.String.check(Schema.isMinLength(1))

  it.effect.prop(
    "is cut into well-formed pieces that fit and give the same text",
    { text: Text, times: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_000 })) },
    ({ text, times }) =>
      Effect.sync(() => {
        const whole = text.toWellFormed().repeat(times)
        const limit = 8_192
        const pieces = splitDelta(textDelta(whole), limit)
        const texts = pieces.map((piece) => ("text" in piece ? piece.text : ""))
        assert.strictEqual(texts.join(""), whole)
        assert.isTrue(texts.every((piece) => piece.isWellFormed() && piece !== ""))
        for (const piece of pieces)
          assert.isAtMost(encodeRunEventFrame(2 ** 32 - 1, 2 ** 32 - 1, piece).length, limit)
      }),
    { arbitrary: { runs: 100 } }
  )

  it("names a tool call once", () => {
    const pieces = splitDelta(call(3, "x".repeat(10_000), "look"), 8_192)
    assert.isAbove(pieces.length, 1)
    assert.deepStrictEqual(
      pieces.map((piece) => piece.kind === "tool_call" && piece.name),
      ["look", ...pieces.slice(1).map(() => undefined)]
    )
  })
})
