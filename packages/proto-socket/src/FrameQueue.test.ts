import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FrameDecoder, FrameError } from "./FrameDecoder.ts"
import { FrameQueue } from "./FrameQueue.ts"
import { texts } from "./testing/sockets.ts"

const KIB = 1024

/** Everything that is left, in batches of `maxBytes`, read back as frames. */
const drain = (queue: FrameQueue, maxBytes = 64 * KIB) => {
  const decoder = new FrameDecoder(64 * 1024 * KIB)
  const frames: Array<Uint8Array> = []
  const batches: Array<{ bytes: number; frames: number; segments: number }> = []
  for (let batch = queue.takeBatch(maxBytes); batch !== undefined; batch = queue.takeBatch(maxBytes)) {
    for (const segment of batch.segments) decoder.push(segment, frames)
    const bytes = batch.segments.reduce((sum, segment) => sum + segment.length, 0)
    assert.strictEqual(batch.bytes, bytes)
    batches.push({ bytes, frames: batch.frames, segments: batch.segments.length })
  }
  assert.strictEqual(decoder.pendingBytes, 0)
  return { frames, batches }
}

describe("FrameQueue", () => {
  it("joins small frames into one buffer, control frames first, in order within a lane", () => {
    const queue = new FrameQueue()
    queue.push(Buffer.from("d1"), "data")
    queue.push(Buffer.from("c1"), "control")
    queue.push(Buffer.from("d2"), "data")
    queue.push(Buffer.from("c2"), "control")
    assert.strictEqual(queue.bytes, 24)
    const { frames, batches } = drain(queue)
    assert.deepStrictEqual(texts(frames), ["c1", "c2", "d1", "d2"])
    assert.deepStrictEqual(batches, [{ bytes: 24, frames: 4, segments: 1 }])
    assert.strictEqual(queue.bytes, 0)
  })

  it("does not copy a large payload", () => {
    const queue = new FrameQueue()
    const large = Buffer.alloc(40 * KIB, 7)
    queue.push(Buffer.from("before"), "data")
    queue.push(large, "data")
    queue.push(Buffer.from("after"), "data")
    const batch = queue.takeBatch(64 * KIB)
    assert.deepStrictEqual(
      batch?.segments.map((segment) => segment.length),
      [6 + 4 + 4, 40 * KIB, 4 + 5]
    )
    assert.strictEqual(batch?.segments[1], large)
  })

  it("cuts a frame that is larger than a batch, and lets nothing in between", () => {
    const queue = new FrameQueue()
    queue.push(Buffer.alloc(100 * KIB, "x"), "data")
    const first = queue.takeBatch(16 * KIB)
    queue.push(Buffer.from("ping"), "control")
    assert.strictEqual(first?.bytes, 16 * KIB)
    assert.strictEqual(queue.bytes, 100 * KIB + 4 - 16 * KIB + 8)
    const decoder = new FrameDecoder(1024 * KIB)
    const frames: Array<Uint8Array> = []
    for (const segment of first?.segments ?? []) decoder.push(segment, frames)
    for (let batch = queue.takeBatch(16 * KIB); batch !== undefined; batch = queue.takeBatch(16 * KIB)) {
      assert.isAtMost(batch.bytes, 16 * KIB + 8)
      for (const segment of batch.segments) decoder.push(segment, frames)
    }
    assert.deepStrictEqual(
      frames.map((frame) => frame.length),
      [100 * KIB, 4]
    )
  })

  it("removes a data frame by its tag while it waits", () => {
    const queue = new FrameQueue()
    for (const tag of [1, 2, 3]) queue.push(Buffer.from(`run ${tag}`), "data", tag)
    assert.isTrue(queue.remove(2))
    assert.isFalse(queue.remove(2))
    assert.isFalse(queue.remove(9))
    assert.strictEqual(queue.bytes, 18)
    assert.deepStrictEqual(texts(drain(queue).frames), ["run 1", "run 3"])
    assert.isFalse(queue.remove(1))
  })

  it("does not remove a frame that has begun to leave", () => {
    const queue = new FrameQueue()
    queue.push(Buffer.alloc(100 * KIB), "data", 1)
    queue.push(Buffer.from("next"), "data", 2)
    const begun = queue.takeBatch(16 * KIB)
    assert.isFalse(queue.remove(1))
    assert.isTrue(queue.remove(2))
    assert.strictEqual(begun?.frames, 1)
    assert.strictEqual(queue.bytes, 100 * KIB + 4 - 16 * KIB)
  })

  it("gives a tag that is used again to the later frame", () => {
    const queue = new FrameQueue()
    queue.push(Buffer.from("first"), "data", 1)
    queue.push(Buffer.from("second"), "data", 1)
    assert.isTrue(queue.remove(1))
    assert.isFalse(queue.remove(1))
    assert.deepStrictEqual(texts(drain(queue).frames), ["first"])
  })

  it("is empty when everything was removed", () => {
    const queue = new FrameQueue()
    queue.push(Buffer.from("gone"), "data", 1)
    queue.remove(1)
    assert.strictEqual(queue.bytes, 0)
    assert.isUndefined(queue.takeBatch(KIB))
    queue.push(Buffer.from("here"), "data", 1)
    assert.isTrue(queue.remove(1))
  })

  it("refuses an empty payload", () => {
    const queue = new FrameQueue()
    assert.throws(
      () => queue.push(new Uint8Array(0), "data"),
      FrameError,
      "a frame of length 0 cannot be sent"
    )
  })

  it.effect.prop(
    "gives back what was pushed and not removed, whatever the sizes of frames and batches",
    {
      frames: Schema.Array(
        Schema.Struct({
          length: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50_000 })),
          control: Schema.Boolean,
          remove: Schema.Boolean,
          flush: Schema.Boolean
        })
      ),
      batchBytes: Schema.Int.check(Schema.isBetween({ minimum: 1_000, maximum: 100_000 }))
    },
    ({ frames, batchBytes }) =>
      Effect.sync(() => {
        const queue = new FrameQueue()
        const decoder = new FrameDecoder(1024 * KIB)
        const got: Array<Uint8Array> = []
        const kept: { control: Array<number>; data: Array<number> } = { control: [], data: [] }
        const take = () => {
          const batch = queue.takeBatch(batchBytes)
          for (const segment of batch?.segments ?? []) decoder.push(segment, got)
          return batch !== undefined
        }
        frames.forEach(({ length, control, remove, flush }, tag) => {
          const payload = Buffer.alloc(length + 5)
          payload[0] = control ? 1 : 0
          payload.writeUInt32BE(tag, 1)
          queue.push(payload, control ? "control" : "data", tag)
          if (flush) take()
          const removed = remove && queue.remove(tag)
          if (!removed) kept[control ? "control" : "data"].push(tag)
        })
        while (take()) assert.isAtLeast(queue.bytes, 0)
        const of = (lane: number) =>
          got.filter((frame) => frame[0] === lane).map((frame) => Buffer.from(frame).readUInt32BE(1))
        assert.deepStrictEqual(of(1), kept.control)
        assert.deepStrictEqual(of(0), kept.data)
        assert.strictEqual(queue.bytes, 0)
      }),
    { arbitrary: { runs: 100 } }
  )

  it("keeps order and tags over thousands of frames that wait", () => {
    const queue = new FrameQueue()
    const expected: Array<string> = []
    for (let i = 0; i < 5_000; i++) queue.push(Buffer.from(`${i}`), "data", i)
    const taken = queue.takeBatch(20_000)
    for (let i = 0; i < 5_000; i++) {
      const removed = i % 3 === 0 && queue.remove(i)
      if (!removed && i >= (taken?.frames ?? 0)) expected.push(`${i}`)
    }
    assert.isAbove(taken?.frames ?? 0, 1_024)
    assert.deepStrictEqual(texts(drain(queue, 1_000).frames), expected)
  })
})
