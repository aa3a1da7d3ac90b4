// Real sockets for the tests: a connected pair, a connection that writes down what it is told, and waiting for it.

import { once } from "node:events"
import { connect, createServer, Socket } from "node:net"
import { Effect, type Scope } from "effect"
import type { CloseReason } from "../CloseReason.ts"
import { FrameConnection, type FrameConnectionOptions } from "../FrameConnection.ts"

/** The two ends of one TCP connection over loopback. */
export interface SocketPair {
  readonly near: Socket
  readonly far: Socket
}

/** Connects a pair; the scope destroys both ends. */
export const socketPair: Effect.Effect<SocketPair, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = createServer({ noDelay: true }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    if (address === null || typeof address === "string") throw new Error("the server has no port")
    const far = connect({ port: address.port, host: "127.0.0.1", noDelay: true })
    const [[near]]: [Array<Socket>, unknown] = await Promise.all([
      once(server, "connection"),
      once(far, "connect")
    ])
    server.close()
    if (near === undefined) throw new Error("nobody connected")
    // The tests cut connections at both ends on purpose.
    far.on("error", () => undefined)
    return { near, far }
  }),
  ({ near, far }) =>
    Effect.sync(() => {
      near.destroy()
      far.destroy()
    })
)

/** A socket without a network, which has taken a write when the test says so. */
export class HeldSocket extends Socket {
  /** Sizes of the writes, in bytes. */
  readonly writes: Array<number> = []
  #release: ((error?: Error | null) => void) | undefined

  override _write(chunk: Uint8Array, _encoding: unknown, callback: (error?: Error | null) => void): void {
    this.#hold(chunk.length, callback)
  }

  override _writev(
    chunks: ReadonlyArray<{ readonly chunk: Uint8Array }>,
    callback: (error?: Error | null) => void
  ): void {
    this.#hold(
      chunks.reduce((sum, { chunk }) => sum + chunk.length, 0),
      callback
    )
  }

  override _read(): void {}

  /** The write in hand is done. */
  release(): void {
    const release = this.#release
    if (release === undefined) throw new Error("nothing is written")
    this.#release = undefined
    release()
  }

  #hold(bytes: number, callback: (error?: Error | null) => void): void {
    this.writes.push(bytes)
    this.#release = callback
  }
}

/** What a connection told its owner. */
export interface Recorder {
  /** The options that write into this recorder. */
  readonly options: FrameConnectionOptions
  readonly frames: Array<Uint8Array>
  /** How many frames each read brought. */
  readonly reads: Array<number>
  readonly closes: Array<CloseReason>
  /** Waits until so many frames have come. */
  readonly received: (count: number) => Effect.Effect<void>
  /** Waits for the end. */
  readonly closed: Effect.Effect<CloseReason>
}

/** A recorder with limits of 1 MiB and 30 s unless given. */
export function makeRecorder(options: Partial<FrameConnectionOptions> = {}): Recorder {
  const frames: Array<Uint8Array> = []
  const reads: Array<number> = []
  const closes: Array<CloseReason> = []
  return {
    frames,
    reads,
    closes,
    received: (count) => waitUntil(() => frames.length >= count),
    closed: Effect.map(
      waitUntil(() => closes.length > 0),
      () => closes[0]!
    ),
    options: {
      maxFrameBytes: 1024 * 1024,
      writeDeadlineMs: 30_000,
      onFrames: (batch) => {
        reads.push(batch.length)
        frames.push(...batch)
      },
      onClose: (reason) => {
        closes.push(reason)
      },
      ...options
    }
  }
}

/** Opens the near end of a new pair. */
export const openNear = (options: Partial<FrameConnectionOptions> = {}) =>
  Effect.map(socketPair, ({ near, far }) => {
    const recorder = makeRecorder(options)
    return { connection: new FrameConnection(near, recorder.options), recorder, far }
  })

/** Lets the event loop turn until the condition holds; the test's own time limit ends a wait that never does. */
export const waitUntil = (condition: () => boolean): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    let waiting = true
    const look = () => {
      if (!waiting) return
      if (condition()) resume(Effect.void)
      else setImmediate(look)
    }
    look()
    return Effect.sync(() => {
      waiting = false
    })
  })

/** Lets the event loop turn so many times, for asserting that nothing happens. */
export const turns = (count: number): Effect.Effect<void> => {
  let left = count
  return waitUntil(() => left-- <= 0)
}

/** A frame as it is on the wire. */
export function wireFrame(payload: Uint8Array | string): Buffer {
  const body = Buffer.from(payload)
  const header = Buffer.alloc(4)
  header.writeUInt32BE(body.length)
  return Buffer.concat([header, body])
}

/** The payloads as text. */
export const texts = (frames: ReadonlyArray<Uint8Array>): Array<string> =>
  frames.map((frame) => Buffer.from(frame).toString())
