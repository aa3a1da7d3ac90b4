import { once } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, vi } from "vitest"
import { describeForeignBytes } from "./describePeer.ts"
import { FrameConnection } from "./FrameConnection.ts"
import { FrameDecoder } from "./FrameDecoder.ts"
import { processWarnings } from "./testing/processWarnings.ts"
import {
  HeldSocket,
  makeRecorder,
  openNear,
  socketPair,
  texts,
  turns,
  waitUntil,
  wireFrame
} from "./testing/sockets.ts"

const MIB = 1024 * 1024
/** More than the kernel takes for a peer that does not read, on loopback. */
const TOO_MUCH = 32 * MIB

/** A header that declares 0xFFFFFFFF bytes. */
const HUGE_HEADER = Buffer.alloc(4, 0xff)

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe("reading", () => {
  it.live("FR6 gives all frames of a read at once, in order", () =>
    Effect.gen(function* () {
      const { connection, recorder, far } = yield* openNear()
      const sent = Array.from({ length: 1_000 }, (_, i) => `frame ${i} ${"x".repeat(i % 50)}`)
      const bytes = Buffer.concat(sent.map(wireFrame))
      far.write(bytes)
      yield* recorder.received(1_000)
      assert.deepStrictEqual(texts(recorder.frames), sent)
      // Far fewer calls than frames: one for each piece in which the kernel hands the bytes over.
      assert.isBelow(recorder.reads.length, 20)
      assert.strictEqual(connection.counters.framesIn, 1_000)
      assert.strictEqual(connection.counters.bytesIn, bytes.length)
    })
  )

  it.live("FR1 ends at a declared length over the limit, without waiting for a body", () =>
    Effect.gen(function* () {
      const { recorder, far } = yield* openNear()
      far.write(Buffer.concat([wireFrame("good"), HUGE_HEADER]))
      const reason = yield* recorder.closed
      assert.deepStrictEqual(reason, {
        tag: "frame_too_large",
        message: "the peer declared a frame of 4294967295 bytes, the limit is 1048576 bytes",
        declared: 0xffff_ffff
      })
      assert.deepStrictEqual(texts(recorder.frames), ["good"])
    })
  )

  it.live("FR1 obeys a limit that is raised later", () =>
    Effect.gen(function* () {
      const { connection, recorder, far } = yield* openNear({ maxFrameBytes: 4 })
      far.write(wireFrame("four"))
      yield* recorder.received(1)
      connection.setMaxFrameBytes(6)
      far.write(wireFrame("sixsix"))
      yield* recorder.received(2)
      far.write(wireFrame("sevenses"))
      assert.strictEqual((yield* recorder.closed).tag, "frame_too_large")
      assert.deepStrictEqual(texts(recorder.frames), ["four", "sixsix"])
    })
  )

  it.live("FR2 ends at a length of 0, and once, on a stream of zero headers", () =>
    Effect.gen(function* () {
      const { recorder, far } = yield* openNear()
      far.write(Buffer.alloc(64 * 1024))
      const reason = yield* recorder.closed
      assert.deepStrictEqual(reason, { tag: "frame_empty", message: "the peer sent a frame of length 0" })
      yield* turns(10)
      assert.strictEqual(recorder.closes.length, 1)
      assert.deepStrictEqual(recorder.frames, [])
    })
  )

  it.live("FR3 ends with `truncated` at a FIN inside a frame", () =>
    Effect.gen(function* () {
      const { recorder, far } = yield* openNear()
      far.end(wireFrame("never whole").subarray(0, 9))
      assert.deepStrictEqual(yield* recorder.closed, {
        tag: "truncated",
        message: "the peer ended the connection inside a frame, after 9 bytes of it",
        pendingBytes: 9
      })
      assert.deepStrictEqual(recorder.frames, [])
    })
  )

  it.live("FR3 ends with `truncated` at a FIN inside a header", () =>
    Effect.gen(function* () {
      const { recorder, far } = yield* openNear()
      far.end(Buffer.from([0, 0]))
      assert.strictEqual((yield* recorder.closed).tag, "truncated")
    })
  )

  it.live("ends with `ended` at a FIN between frames", () =>
    Effect.gen(function* () {
      const { recorder, far } = yield* openNear()
      far.end(wireFrame("last"))
      assert.strictEqual((yield* recorder.closed).tag, "ended")
      assert.deepStrictEqual(texts(recorder.frames), ["last"])
    })
  )

  it.live("ends with `reset` when the peer resets", () =>
    Effect.gen(function* () {
      const { recorder, far } = yield* openNear()
      far.resetAndDestroy()
      assert.strictEqual((yield* recorder.closed).tag, "reset")
    })
  )

  const failures = [
    ["ETIMEDOUT", { tag: "reset", message: "the network lost the connection (read ETIMEDOUT)" }],
    ["EPIPE", { tag: "reset", message: "the connection was reset" }],
    ["EIO", { tag: "error", message: "the connection failed: read EIO" }]
  ] as const
  for (const [code, expected] of failures) {
    it.live(`ends with \`${expected.tag}\` at ${code}`, () =>
      Effect.gen(function* () {
        const { near } = yield* socketPair
        const recorder = makeRecorder()
        new FrameConnection(near, recorder.options)
        near.destroy(Object.assign(new Error(`read ${code}`), { code }))
        const { tag, message } = yield* recorder.closed
        assert.deepStrictEqual({ tag, message }, expected)
      })
    )
  }

  it.live("reports a socket that is closed already, after the constructor", () =>
    Effect.gen(function* () {
      const { near } = yield* socketPair
      near.destroy()
      yield* waitUntil(() => near.closed)
      const recorder = makeRecorder()
      const connection = new FrameConnection(near, recorder.options)
      assert.deepStrictEqual(recorder.closes, [])
      connection.send(Buffer.from("to nobody"), "data")
      assert.strictEqual((yield* recorder.closed).tag, "reset")
    })
  )

  it.live("an exception of onFrames ends the connection and is its reason", () =>
    Effect.gen(function* () {
      const fault = new Error("no such run")
      const { recorder, far } = yield* openNear({
        onFrames: () => {
          throw fault
        }
      })
      far.write(wireFrame("poison"))
      assert.deepStrictEqual(yield* recorder.closed, {
        tag: "error",
        message: "a frame could not be handled: no such run",
        cause: fault
      })
    })
  )

  it.live("an exception of onClose is a warning of the process", () =>
    Effect.gen(function* () {
      const warnings = yield* processWarnings
      const { connection } = yield* openNear({
        onClose: () => {
          throw new Error("the owner is confused")
        }
      })
      connection.destroy("enough")
      yield* waitUntil(() => warnings.length > 0)
      assert.deepStrictEqual(
        warnings.map(({ message }) => message),
        ["the owner is confused"]
      )
    })
  )

  it.live("delivers nothing after destroy, and tells the end once", () =>
    Effect.gen(function* () {
      const frames: Array<string> = []
      const { recorder, far } = yield* openNear({
        onFrames: (batch, connection) => {
          frames.push(...texts(batch))
          connection.destroy("seen enough")
          connection.destroy("again")
          far.write(wireFrame("two"))
        }
      })
      far.write(wireFrame("one"))
      assert.deepStrictEqual(yield* recorder.closed, { tag: "local", message: "seen enough" })
      yield* turns(10)
      assert.deepStrictEqual(frames, ["one"])
      assert.strictEqual(recorder.closes.length, 1)
    })
  )

  it.live("FR7 keeps the first bytes of a stranger", () =>
    Effect.gen(function* () {
      const { connection, recorder, far } = yield* openNear()
      far.write("GET")
      yield* waitUntil(() => connection.counters.bytesIn === 3)
      far.write(" /healthz HTTP/1.1\r\n\r\n")
      assert.strictEqual((yield* recorder.closed).tag, "frame_too_large")
      assert.strictEqual(Buffer.from(connection.firstBytes).toString(), "GET /healthz HTT")
      assert.strictEqual(describeForeignBytes(connection.firstBytes), "HTTP")
    })
  )

  it.live("an unfinished frame is no sign of life", () =>
    Effect.gen(function* () {
      const { connection, recorder, far } = yield* openNear()
      const opened = connection.lastReadAt
      far.write(wireFrame("slow").subarray(0, 6))
      yield* waitUntil(() => connection.counters.bytesIn === 6)
      assert.strictEqual(connection.lastReadAt, opened)
      far.write(wireFrame("slow").subarray(6))
      yield* recorder.received(1)
      assert.isAbove(connection.lastReadAt, opened)
    })
  )
})

/** Reads the far end as frames. */
const readFrames = (far: NodeJS.ReadableStream) => {
  const decoder = new FrameDecoder(TOO_MUCH)
  const frames: Array<Uint8Array> = []
  let chunks = 0
  far.on("data", (chunk: Buffer) => {
    chunks++
    decoder.push(chunk, frames)
  })
  return { frames, chunks: () => chunks }
}

describe("writing", () => {
  it.live("what is sent in one turn leaves in one write, control first", () =>
    Effect.gen(function* () {
      const { connection, far } = yield* openNear()
      const read = readFrames(far)
      for (let i = 0; i < 100; i++) connection.send(Buffer.from(`event ${i}`), "data")
      connection.send(Buffer.from("ping"), "control")
      assert.strictEqual(connection.counters.writes, 0)
      yield* waitUntil(() => read.frames.length === 101)
      assert.strictEqual(connection.counters.writes, 1)
      assert.strictEqual(read.chunks(), 1)
      assert.deepStrictEqual(texts(read.frames), [
        "ping",
        ...Array.from({ length: 100 }, (_, i) => `event ${i}`)
      ])
      yield* waitUntil(() => connection.queuedBytes === 0)
      const { framesOut, bytesOut } = connection.counters
      assert.deepStrictEqual({ framesOut, bytesOut }, { framesOut: 101, bytesOut: far.bytesRead })
    })
  )

  it.live("a frame of many megabytes arrives whole, between its neighbours", () =>
    Effect.gen(function* () {
      const { connection, far } = yield* openNear()
      const read = readFrames(far)
      const large = Buffer.alloc(5 * MIB, "0123456789")
      connection.send(Buffer.from("before"), "data")
      connection.send(large, "data")
      connection.send(Buffer.from("after"), "data")
      yield* waitUntil(() => read.frames.length === 3)
      assert.deepStrictEqual(
        read.frames.map((frame) => frame.length),
        [6, large.length, 5]
      )
      assert.strictEqual(Buffer.compare(read.frames[1]!, large), 0)
    })
  )

  it.live("a control frame overtakes the data that waits for a peer that does not read", () =>
    Effect.gen(function* () {
      const { connection, far } = yield* openNear()
      const data = Buffer.alloc(256 * 1024, "d")
      const count = TOO_MUCH / data.length
      for (let i = 0; i < count; i++) connection.send(data, "data")
      yield* waitUntil(() => connection.counters.framesOut > 0)
      yield* turns(200)
      // Frames that have begun to leave go first; then the ping, before everything that waits.
      const begun = connection.counters.framesOut
      assert.isBelow(begun, count)
      for (let i = 0; i < 10; i++) {
        connection.send(Buffer.from("more"), "data")
        yield* turns(2)
      }
      assert.strictEqual(connection.counters.framesOut, begun)
      connection.send(Buffer.from("ping"), "control")
      const read = readFrames(far)
      yield* waitUntil(() => read.frames.length === count + 11)
      assert.strictEqual(texts(read.frames.slice(begun, begun + 1))[0], "ping")
    })
  )

  it.live("a request that waits can be taken back, one that left cannot", () =>
    Effect.gen(function* () {
      const { connection, far } = yield* openNear()
      const read = readFrames(far)
      connection.send(Buffer.from("run 1"), "data", 1)
      connection.send(Buffer.from("run 2"), "data", 2)
      assert.isTrue(connection.unsend(1))
      assert.isFalse(connection.unsend(1))
      assert.strictEqual(connection.queuedBytes, 9)
      yield* waitUntil(() => read.frames.length === 1)
      assert.isFalse(connection.unsend(2))
      assert.deepStrictEqual(texts(read.frames), ["run 2"])
    })
  )

  it.live("send after the end does nothing", () =>
    Effect.gen(function* () {
      const { connection, recorder } = yield* openNear()
      connection.destroy("over")
      assert.isFalse(connection.isOpen)
      connection.send(Buffer.from("late"), "data")
      assert.strictEqual(connection.queuedBytes, 0)
      yield* recorder.closed
      assert.strictEqual(connection.counters.writes, 0)
    })
  )

  it.live("close writes what is queued, then ends", () =>
    Effect.gen(function* () {
      const { connection, recorder, far } = yield* openNear()
      const read = readFrames(far)
      const ended = once(far, "end")
      connection.send(Buffer.alloc(MIB, "x"), "data")
      connection.send(Buffer.from("goodbye"), "data")
      connection.close("the edge stops", 60_000)
      connection.send(Buffer.from("too late"), "data")
      yield* Effect.promise(() => ended)
      assert.deepStrictEqual(
        read.frames.map((frame) => frame.length),
        [MIB, 7]
      )
      assert.deepStrictEqual(yield* recorder.closed, { tag: "local", message: "the edge stops" })
    })
  )

  it.live("close delivers nothing that comes while it flushes, and does not cut its last frame off", () =>
    Effect.gen(function* () {
      const { connection, recorder, far } = yield* openNear()
      const read = readFrames(far)
      connection.send(Buffer.from("rejected"), "data")
      connection.close("wrong token", 60_000)
      far.write(Buffer.concat([wireFrame("ignored"), HUGE_HEADER]))
      yield* recorder.closed
      yield* waitUntil(() => far.closed)
      assert.isNull(far.errored)
      assert.deepStrictEqual(texts(read.frames), ["rejected"])
      assert.deepStrictEqual(recorder.frames, [])
      assert.deepStrictEqual(recorder.closes, [{ tag: "local", message: "wrong token" }])
    })
  )

  it.live("close waits for the peer to have read everything", () =>
    Effect.gen(function* () {
      const { connection, recorder, far } = yield* openNear()
      connection.send(Buffer.from("goodbye"), "data")
      connection.close("the edge stops", 60_000)
      yield* waitUntil(() => connection.counters.writes === 1)
      yield* turns(50)
      assert.deepStrictEqual(recorder.closes, [])
      const read = readFrames(far)
      yield* recorder.closed
      assert.deepStrictEqual(texts(read.frames), ["goodbye"])
    })
  )

  it.live("batches are small for a slow peer and grow with a fast one", () =>
    Effect.gen(function* () {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
      const socket = new HeldSocket()
      const { options } = makeRecorder()
      const connection = new FrameConnection(socket, options)
      connection.send(Buffer.alloc(2 * MIB), "data")
      for (const [index, tookMs] of [0, 0, 0, 101, 0, 0, 0, 0, 0].entries()) {
        yield* waitUntil(() => socket.writes.length === index + 1)
        vi.advanceTimersByTime(tookMs)
        socket.release()
      }
      assert.deepStrictEqual(
        socket.writes.map((bytes) => bytes / 1024),
        [64, 128, 256, 256, 16, 32, 64, 128, 256]
      )
      connection.destroy("test over")
    })
  )

  it.live("close ends after its time even if the peer takes nothing", () =>
    Effect.gen(function* () {
      const { connection, recorder, far } = yield* openNear()
      connection.send(Buffer.alloc(TOO_MUCH), "data")
      connection.close("drained", 20)
      assert.deepStrictEqual(yield* recorder.closed, { tag: "local", message: "drained" })
      assert.isFalse(far.destroyed)
      assert.strictEqual(connection.queuedBytes, 0)
    })
  )
})

describe("the write deadline", () => {
  const DEADLINE_MS = 30_000

  /** A connection whose peer has taken what the kernel takes, and no more. */
  const openStuck = Effect.gen(function* () {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
    const opened = yield* openNear({ writeDeadlineMs: DEADLINE_MS })
    for (let i = 0; i < TOO_MUCH / MIB; i++) opened.connection.send(Buffer.alloc(MIB), "data")
    yield* untilStill(opened.connection)
    return opened
  })

  /** Waits until nothing more goes out for many turns. */
  const untilStill = (connection: FrameConnection) => {
    let last = -1
    let same = 0
    return waitUntil(() => {
      same = connection.counters.bytesOut === last ? same + 1 : 0
      last = connection.counters.bytesOut
      return same > 500
    })
  }

  it.live("ends a connection whose peer takes nothing", () =>
    Effect.gen(function* () {
      const { recorder } = yield* openStuck
      vi.advanceTimersByTime(DEADLINE_MS - 1)
      yield* turns(10)
      assert.deepStrictEqual(recorder.closes, [])
      vi.advanceTimersByTime(1)
      assert.deepStrictEqual(yield* recorder.closed, {
        tag: "write_deadline",
        message: "the peer took nothing of what was written for 30000 ms"
      })
    })
  )

  it.live("spares a peer that is slow but reads", () =>
    Effect.gen(function* () {
      const { connection, recorder, far } = yield* openStuck
      for (let round = 0; round < 5; round++) {
        vi.advanceTimersByTime(DEADLINE_MS - 1_000)
        const before = connection.counters.bytesOut
        yield* waitUntil(() => {
          far.read()
          return connection.counters.bytesOut > before
        })
        yield* untilStill(connection)
      }
      assert.deepStrictEqual(recorder.closes, [])
      vi.advanceTimersByTime(DEADLINE_MS)
      assert.strictEqual((yield* recorder.closed).tag, "write_deadline")
    })
  )

  it.live("counts what the peer takes in the turn in which the deadline ends", () =>
    Effect.gen(function* () {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
      const socket = new HeldSocket()
      const recorder = makeRecorder({ writeDeadlineMs: DEADLINE_MS })
      const connection = new FrameConnection(socket, recorder.options)
      connection.send(Buffer.alloc(MIB), "data")
      yield* waitUntil(() => socket.writes.length === 1)
      vi.advanceTimersByTime(DEADLINE_MS)
      socket.release()
      yield* waitUntil(() => socket.writes.length === 2)
      vi.advanceTimersByTime(DEADLINE_MS - 1)
      yield* turns(10)
      assert.deepStrictEqual(recorder.closes, [])
      vi.advanceTimersByTime(1)
      assert.strictEqual((yield* recorder.closed).tag, "write_deadline")
    })
  )

  it.live("does not judge a connection that has nothing to write", () =>
    Effect.gen(function* () {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
      const { connection, recorder, far } = yield* openNear({ writeDeadlineMs: DEADLINE_MS })
      const read = readFrames(far)
      connection.send(Buffer.from("one"), "data")
      yield* waitUntil(() => read.frames.length === 1)
      vi.advanceTimersByTime(10 * DEADLINE_MS)
      yield* turns(10)
      connection.send(Buffer.from("two"), "data")
      yield* waitUntil(() => read.frames.length === 2)
      assert.deepStrictEqual(recorder.closes, [])
    })
  )

  it.live("gives the peer another interval when this process stood still", () =>
    Effect.gen(function* () {
      const { recorder } = yield* openStuck
      const now = performance.now.bind(performance)
      vi.spyOn(performance, "now").mockImplementation(() => now() + 60_000)
      vi.advanceTimersByTime(DEADLINE_MS)
      yield* turns(10)
      assert.deepStrictEqual(recorder.closes, [])
      vi.advanceTimersByTime(DEADLINE_MS)
      assert.strictEqual((yield* recorder.closed).tag, "write_deadline")
    })
  )
})
