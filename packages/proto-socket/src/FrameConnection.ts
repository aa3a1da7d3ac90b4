// One connection that carries frames, over TCP or TLS. It owns the rules of a link: it is always read, the frames of
// one turn of the event loop leave in one write with control frames first, a peer that takes nothing for the write
// deadline is cut off, and the end is told exactly once. Plain callbacks: nothing is allocated per frame but the frame.

import type { Socket } from "node:net"
import type { CloseReason } from "./CloseReason.ts"
import { FrameDecoder, FrameError } from "./FrameDecoder.ts"
import { type FrameLane, FrameQueue } from "./FrameQueue.ts"
import { peerAddress } from "./peerAddress.ts"
import { describeTlsError, errorText, isLost, isReset } from "./socketErrors.ts"

/** How a connection is read and what it tells. */
export interface FrameConnectionOptions {
  /** Largest payload that the peer may send, in bytes. */
  readonly maxFrameBytes: number
  /** How long written bytes may make no progress before the connection is destroyed, in milliseconds. */
  readonly writeDeadlineMs: number
  /**
   * All complete frames of one read, in order, never empty. They are views of what was read: copy what is kept for
   * long. An exception destroys the connection with reason `error`.
   */
  readonly onFrames: (frames: ReadonlyArray<Uint8Array>, connection: FrameConnection) => void
  /** Called exactly once, when the socket is closed. Nothing is delivered after it. */
  readonly onClose: (reason: CloseReason, connection: FrameConnection) => void
}

/** What went over a connection since it was opened. Bytes are those of the frames, headers included. */
export interface FrameCounters {
  readonly bytesIn: number
  /** Bytes handed to the socket. */
  readonly bytesOut: number
  readonly framesIn: number
  /** Frames of which at least the first byte was handed to the socket. */
  readonly framesOut: number
  /** Batches handed to the socket: system calls, nearly. */
  readonly writes: number
}

/** A batch to a peer that reads well. */
const MAX_BATCH_BYTES = 256 * 1024
/** The first batch, when nothing is known of the peer yet. */
const FIRST_BATCH_BYTES = 64 * 1024
/** A batch to a slow peer: progress is seen batch by batch, so batches must be small for a deadline to be fair. */
const MIN_BATCH_BYTES = 16 * 1024
/** A batch that takes longer than this was sent to a slow peer. */
const SLOW_BATCH_MS = 100
/** A timer that is so late says that this process stood still, not that the peer did. */
const LATE_TIMER_MS = 1_000
/** How much of the beginning is kept to say what a stranger speaks. */
const FIRST_BYTES = 16

/** One function for all connections, so that a flush costs no closure. */
let flushConnection: (connection: FrameConnection) => void

type Counters = { -readonly [Name in keyof FrameCounters]: FrameCounters[Name] }

export class FrameConnection {
  /** Address of the peer, IPv4 in its IPv4 form; `unknown` when it was gone before it could be asked. */
  readonly remoteAddress: string
  /** Port of the peer; 0 when unknown. */
  readonly remotePort: number
  /** When the last complete frame came, or else when the connection was opened (`performance.now()`). */
  lastReadAt: number

  readonly #socket: Socket
  readonly #options: FrameConnectionOptions
  readonly #decoder: FrameDecoder
  readonly #queue = new FrameQueue()
  readonly #counters: Counters = { bytesIn: 0, bytesOut: 0, framesIn: 0, framesOut: 0, writes: 0 }
  readonly #firstBytes = new Uint8Array(FIRST_BYTES)
  #firstBytesLength = 0

  #state: "open" | "closing" | "destroyed" = "open"
  #reason: CloseReason | undefined
  #flushTimer: NodeJS.Timeout | undefined

  /** A flush is scheduled for the end of this turn. */
  #scheduled = false
  /** Bytes of the batch that the socket has not yet passed on; 0 when it can be given the next one. */
  #inFlightBytes = 0
  #inFlightSince = 0
  #batchBytes = FIRST_BATCH_BYTES
  #deadlineTimer: NodeJS.Timeout | undefined
  #deadlineDue = 0

  /**
   * Takes over a connected socket (for TLS: after the handshake) and begins to read it. From now on the socket is the
   * connection's alone.
   */
  constructor(socket: Socket, options: FrameConnectionOptions) {
    this.#socket = socket
    this.#options = options
    this.#decoder = new FrameDecoder(options.maxFrameBytes)
    this.remoteAddress = peerAddress(socket.remoteAddress)
    this.remotePort = socket.remotePort ?? 0
    this.lastReadAt = performance.now()
    socket.setNoDelay(true)
    socket.on("error", (error) => this.#onError(error))
    if (socket.closed) {
      // Its `close` event has passed already; the owner gets its callback all the same, after this constructor.
      setImmediate(() => this.#onSocketClose())
      return
    }
    socket.on("data", (chunk: Uint8Array) => this.#onData(chunk))
    socket.on("end", () => this.#onEnd())
    socket.on("close", () => this.#onSocketClose())
  }

  get counters(): FrameCounters {
    return this.#counters
  }

  /** Up to 16 bytes with which the peer began, to say what a stranger speaks. */
  get firstBytes(): Uint8Array {
    return this.#firstBytes.subarray(0, this.#firstBytesLength)
  }

  /** Bytes that were sent here and not yet taken by the operating system. */
  get queuedBytes(): number {
    return this.#queue.bytes + this.#inFlightBytes
  }

  /** True until `close`, `destroy` or the end of the connection: whether `send` still does something. */
  get isOpen(): boolean {
    return this.#state === "open"
  }

  /** Changes the largest payload (bytes) that the peer may send, from the next header on. */
  setMaxFrameBytes(maxFrameBytes: number): void {
    this.#decoder.setMaxFrameBytes(maxFrameBytes)
  }

  /**
   * Queues one payload, which must not be changed afterwards; it leaves at the end of this turn of the event loop, or
   * when the peer takes it. `tag` names a data frame for `unsend`. Does nothing on a connection that has ended.
   *
   * Throws `FrameError` for an empty payload.
   */
  send(payload: Uint8Array, lane: FrameLane, tag?: number): void {
    if (this.#state !== "open") return
    this.#queue.push(payload, lane, tag)
    this.#schedule()
  }

  /** Takes back the data frame with this tag. False when none waits, or when it has begun to leave. */
  unsend(tag: number): boolean {
    return this.#queue.remove(tag)
  }

  /**
   * Ends the connection in order: writes what is queued, then FIN, waits for the peer's FIN, and destroys after
   * `flushMs` milliseconds whatever happens. Nothing is delivered or accepted from now on.
   */
  close(message: string, flushMs: number): void {
    if (this.#state !== "open") return
    this.#state = "closing"
    this.#reason = { tag: "local", message }
    this.#flushTimer = setTimeout(() => this.#destroy(), flushMs)
    this.#schedule()
  }

  /** Ends the connection at once; what is queued is dropped. */
  destroy(message: string): void {
    this.#fail({ tag: "local", message })
  }

  #onData(chunk: Uint8Array): void {
    this.#counters.bytesIn += chunk.length
    if (this.#state !== "open") return
    if (this.#firstBytesLength < FIRST_BYTES) {
      const head = chunk.subarray(0, FIRST_BYTES - this.#firstBytesLength)
      this.#firstBytes.set(head, this.#firstBytesLength)
      this.#firstBytesLength += head.length
    }
    const frames: Array<Uint8Array> = []
    let broken: FrameError | undefined
    try {
      this.#decoder.push(chunk, frames)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      broken = error
    }
    if (frames.length > 0) {
      this.#counters.framesIn += frames.length
      this.lastReadAt = performance.now()
      try {
        this.#options.onFrames(frames, this)
      } catch (cause) {
        this.#fail({ tag: "error", message: `a frame could not be handled: ${errorText(cause)}`, cause })
      }
    }
    if (broken !== undefined) {
      const message = broken.message
      this.#fail(
        broken.reason === "frame_empty"
          ? { tag: "frame_empty", message }
          : { tag: "frame_too_large", message, declared: broken.declared ?? 0 }
      )
    }
  }

  #onEnd(): void {
    if (this.#state === "closing") {
      // Node ends its own half by itself now, behind what was handed over; the rest has no reader.
      this.#queue.clear()
      return
    }
    const pendingBytes = this.#decoder.pendingBytes
    this.#fail(
      pendingBytes === 0
        ? { tag: "ended", message: "the peer ended the connection" }
        : {
            tag: "truncated",
            message: `the peer ended the connection inside a frame, after ${pendingBytes} bytes of it`,
            pendingBytes
          }
    )
  }

  #onError(error: Error): void {
    if (isReset(error)) {
      this.#fail({ tag: "reset", message: "the connection was reset" })
      return
    }
    if (isLost(error)) {
      this.#fail({ tag: "reset", message: `the network lost the connection (${errorText(error)})` })
      return
    }
    this.#fail({
      tag: "error",
      message: describeTlsError(error) ?? `the connection failed: ${errorText(error)}`,
      cause: error
    })
  }

  #onSocketClose(): void {
    this.#destroy()
    const reason = this.#reason ?? { tag: "reset", message: "the connection was closed" }
    try {
      this.#options.onClose(reason, this)
    } catch (error) {
      // A fault of one link's owner must not end the process with every other link, nor pass unseen.
      process.emitWarning(error instanceof Error ? error : String(error))
    }
  }

  /** The first reason stays. */
  #fail(reason: CloseReason): void {
    if (this.#reason === undefined) this.#reason = reason
    this.#destroy()
  }

  #destroy(): void {
    if (this.#state === "destroyed") return
    this.#state = "destroyed"
    clearTimeout(this.#flushTimer)
    clearTimeout(this.#deadlineTimer)
    this.#queue.clear()
    this.#inFlightBytes = 0
    this.#socket.destroy()
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlightBytes > 0) return
    this.#scheduled = true
    setImmediate(flushConnection, this)
  }

  static {
    flushConnection = (connection) => connection.#flush()
  }

  /** Hands the next batch to the socket, which has none in hand. One at a time, so that a control frame waits for one batch at most. */
  #flush(): void {
    this.#scheduled = false
    if (this.#state === "destroyed") return
    const batch = this.#queue.takeBatch(this.#batchBytes)
    if (batch === undefined) {
      if (this.#state === "closing") this.#socket.end()
      return
    }
    this.#counters.writes++
    this.#counters.framesOut += batch.frames
    this.#counters.bytesOut += batch.bytes
    this.#inFlightBytes = batch.bytes
    this.#inFlightSince = performance.now()
    this.#armDeadline(this.#options.writeDeadlineMs)
    const { segments } = batch
    const last = segments.length - 1
    if (last > 0) this.#socket.cork()
    for (let i = 0; i < last; i++) this.#socket.write(segments[i]!)
    this.#socket.write(segments[last]!, this.#onWritten)
    if (last > 0) this.#socket.uncork()
  }

  readonly #onWritten = (error?: Error | null): void => {
    // An error comes again as the socket's `error` event, which ends the connection.
    if (error || this.#state === "destroyed") return
    const took = performance.now() - this.#inFlightSince
    this.#batchBytes =
      took > SLOW_BATCH_MS ? MIN_BATCH_BYTES : Math.min(MAX_BATCH_BYTES, this.#batchBytes * 2)
    this.#inFlightBytes = 0
    // Not directly: a socket that takes everything at once would hold the event loop until the queue is empty.
    if (this.#queue.bytes > 0 || this.#state === "closing") this.#schedule()
  }

  /** One timer, which is left running while batches come and go and looks at the last of them when it fires. */
  #armDeadline(afterMs: number): void {
    if (this.#deadlineTimer !== undefined) return
    this.#deadlineDue = performance.now() + afterMs
    this.#deadlineTimer = setTimeout(() => this.#onDeadline(), afterMs)
  }

  #onDeadline(): void {
    this.#deadlineTimer = undefined
    if (this.#inFlightBytes === 0) return
    const { writeDeadlineMs } = this.#options
    const now = performance.now()
    if (now - this.#deadlineDue > LATE_TIMER_MS) {
      this.#inFlightSince = now
      this.#armDeadline(writeDeadlineMs)
      return
    }
    const left = writeDeadlineMs - (now - this.#inFlightSince)
    if (left > 0) {
      this.#armDeadline(Math.ceil(left))
      return
    }
    // The peer may have read in this very turn: judge after the socket had its chance to say so.
    setImmediate(() => {
      if (this.#inFlightBytes === 0) return
      this.#fail({
        tag: "write_deadline",
        message: `the peer took nothing of what was written for ${writeDeadlineMs} ms`
      })
    })
  }
}
