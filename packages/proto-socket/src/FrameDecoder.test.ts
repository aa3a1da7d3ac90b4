import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { vi } from "vitest"
import { FrameDecoder, FrameError } from "./FrameDecoder.ts"
import { texts, wireFrame } from "./testing/sockets.ts"

const MIB = 1024 * 1024

const header = (length: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}

const decode = (chunks: ReadonlyArray<Uint8Array>, maxFrameBytes = MIB) => {
  const decoder = new FrameDecoder(maxFrameBytes)
  const frames: Array<Uint8Array> = []
  for (const chunk of chunks) decoder.push(chunk, frames)
  return { frames, pendingBytes: decoder.pendingBytes }
}

/** Pushes and gives the error that it must throw. */
const refusal = (decoder: FrameDecoder, chunk: Uint8Array, into: Array<Uint8Array> = []): FrameError => {
  try {
    decoder.push(chunk, into)
  } catch (error) {
    assert.instanceOf(error, FrameError)
    return error
  }
  return assert.fail("the decoder took a chunk that it must refuse")
}

/** `length` bytes that differ from frame to frame and from place to place. */
const payload = (length: number, seed: number) =>
  Uint8Array.from({ length }, (_, i) => (i * 31 + seed * 7) & 255)

const session = [1, 2, 3, 255, 256, 257, 1000, 70, 1, 4].map(payload)
const sessionBytes = Buffer.concat(session.map(wireFrame))

describe("FrameDecoder", () => {
  const Length = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5_000 }))

  it.effect.prop(
    "gives the same frames for any split of the bytes",
    { lengths: Schema.Array(Length), cuts: Schema.NonEmptyArray(Length) },
    ({ lengths, cuts }) =>
      Effect.sync(() => {
        const payloads = lengths.map(payload)
        const bytes = Buffer.concat(payloads.map(wireFrame))
        const chunks: Array<Uint8Array> = []
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const end = at + cuts[turn % cuts.length]!
          chunks.push(bytes.subarray(at, end))
          at = end
        }
        const { frames, pendingBytes } = decode(chunks)
        assert.deepStrictEqual(frames.map(toArray), payloads.map(toArray))
        assert.strictEqual(pendingBytes, 0)
      }),
    { arbitrary: { runs: 200 } }
  )

  it("FR5 gives the same frames when the session is cut at any one byte, or at all of them", () => {
    const expected = session.map(toArray)
    for (let cut = 0; cut <= sessionBytes.length; cut++) {
      const { frames, pendingBytes } = decode([sessionBytes.subarray(0, cut), sessionBytes.subarray(cut)])
      assert.deepStrictEqual(frames.map(toArray), expected, `cut at ${cut}`)
      assert.strictEqual(pendingBytes, 0)
    }
    const single = Array.from(sessionBytes, (byte) => Uint8Array.of(byte))
    assert.deepStrictEqual(decode(single).frames.map(toArray), expected)
  })

  it.effect.prop(
    "FR7 answers noise with frames or with a FrameError, never otherwise, and holds no more than came",
    { noise: Schema.Array(Schema.Uint8Array) },
    ({ noise }) =>
      Effect.sync(() => {
        const decoder = new FrameDecoder(64 * 1024)
        const frames: Array<Uint8Array> = []
        let received = 0
        for (const chunk of noise) {
          received += chunk.length
          try {
            decoder.push(chunk, frames)
          } catch (error) {
            assert.instanceOf(error, FrameError)
            break
          }
        }
        const delivered = frames.reduce((sum, frame) => sum + frame.length + 4, 0)
        assert.isAtMost(delivered + decoder.pendingBytes, received)
      }),
    { arbitrary: { runs: 200 } }
  )

  it("does not copy a frame that lies whole in a chunk", () => {
    const chunk = Buffer.concat([wireFrame("one"), wireFrame("two")])
    const { frames } = decode([chunk])
    assert.deepStrictEqual(texts(frames), ["one", "two"])
    assert.deepStrictEqual(
      frames.map((frame) => [frame.buffer === chunk.buffer, frame.byteOffset - chunk.byteOffset]),
      [
        [true, 4],
        [true, 11]
      ]
    )
  })

  it("does not share the memory of a frame that came in parts", () => {
    const chunk = wireFrame("gathered")
    const decoder = new FrameDecoder(MIB)
    const frames: Array<Uint8Array> = []
    decoder.push(chunk.subarray(0, 6), frames)
    const rest = Buffer.from(chunk.subarray(6))
    decoder.push(rest, frames)
    rest.fill(0)
    assert.deepStrictEqual(texts(frames), ["gathered"])
  })

  it("says how much of an unfinished frame there is (FR3)", () => {
    const bytes = wireFrame("abcdef")
    const decoder = new FrameDecoder(MIB)
    const frames: Array<Uint8Array> = []
    const pending: Array<number> = []
    for (const byte of bytes) {
      decoder.push(Uint8Array.of(byte), frames)
      pending.push(decoder.pendingBytes)
    }
    assert.deepStrictEqual(pending, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0])
    assert.deepStrictEqual(texts(frames), ["abcdef"])
  })

  it("takes a frame of exactly the limit", () => {
    assert.strictEqual(decode([wireFrame(payload(100, 1))], 100).frames[0]?.length, 100)
  })

  for (const length of [64 * 1024 + 1, 0xffff_ffff]) {
    it(`FR1 refuses a length of ${length} on the fourth byte, without allocating`, () => {
      const decoder = new FrameDecoder(64 * 1024)
      const allocated = countAllocated(() => {
        decoder.push(header(length).subarray(0, 3), [])
        const error = refusal(decoder, header(length).subarray(3))
        assert.strictEqual(error.reason, "frame_too_large")
        assert.strictEqual(error.declared, length)
        assert.strictEqual(
          error.message,
          `the peer declared a frame of ${length} bytes, the limit is 65536 bytes`
        )
      })
      assert.strictEqual(allocated, 0)
    })
  }

  it("FR2 refuses a length of 0 on the fourth byte", () => {
    const error = refusal(new FrameDecoder(MIB), header(0))
    assert.strictEqual(error.reason, "frame_empty")
    assert.strictEqual(error.declared, 0)
  })

  it("gives the frames before a bad header, and nothing after it", () => {
    const decoder = new FrameDecoder(MIB)
    const frames: Array<Uint8Array> = []
    const first = refusal(decoder, Buffer.concat([wireFrame("good"), header(0), wireFrame("lost")]), frames)
    assert.deepStrictEqual(texts(frames), ["good"])
    assert.strictEqual(refusal(decoder, wireFrame("lost"), frames), first)
    assert.deepStrictEqual(texts(frames), ["good"])
  })

  it("judges every header by the limit of its time", () => {
    const decoder = new FrameDecoder(10)
    const frames: Array<Uint8Array> = []
    decoder.push(wireFrame("0123456789").subarray(0, 8), frames)
    decoder.setMaxFrameBytes(5)
    decoder.push(wireFrame("0123456789").subarray(8), frames)
    assert.deepStrictEqual(texts(frames), ["0123456789"])
    assert.strictEqual(refusal(decoder, wireFrame("012345")).declared, 6)
  })

  it("needs linear memory for 1 MiB that comes byte by byte", () => {
    const bytes = wireFrame(payload(MIB, 3))
    const frames: Array<Uint8Array> = []
    const allocated = countAllocated(() => {
      const decoder = new FrameDecoder(MIB)
      for (let at = 0; at < bytes.length; at++) decoder.push(bytes.subarray(at, at + 1), frames)
    })
    assert.strictEqual(Buffer.compare(frames[0]!, bytes.subarray(4)), 0)
    // Every buffer is at most twice what was received, and each is copied once into the next.
    assert.isAtMost(allocated, 4 * MIB)
  })

  it("holds no more than twice what was received of a large frame", () => {
    const decoder = new FrameDecoder(32 * MIB)
    const allocated = countAllocated(() =>
      decoder.push(Buffer.concat([header(32 * MIB), payload(1_000, 1)]), [])
    )
    assert.isAtMost(allocated, 2_000)
    assert.strictEqual(decoder.pendingBytes, 1_004)
  })
})

const toArray = (bytes: Uint8Array): Array<number> => Array.from(bytes)

/** Bytes that were asked of `Buffer.allocUnsafe`, which is where the decoder gets all its memory. */
function countAllocated(run: () => void): number {
  const spy = vi.spyOn(Buffer, "allocUnsafe")
  try {
    run()
    return spy.mock.calls.reduce((sum, [size]) => sum + size, 0)
  } finally {
    spy.mockRestore()
  }
}
