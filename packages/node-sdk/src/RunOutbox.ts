// The events of one run on their way to the edge: numbers them, keeps them until they are acknowledged, obeys
// the run window and repeats what a lost link swallowed. Plain code without clocks or fibers, so that its one
// promise can be tested with every interleaving: each event arrives once and in order.

import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { isTerminal } from "@iop/platform-common/protocol/RunEvent"

/** Encodes an event as a frame of the link on which the run has the handle. */
export type EncodeEvent = (handle: number, seq: number, event: NodeRunEvent) => Uint8Array

/** What a link does for a run: takes a frame, in order. Never blocks: the windows bound what it holds. */
export type SendFrame = (frame: Uint8Array) => void

/** An event that the edge has not acknowledged. */
interface KeptEvent {
  readonly event: NodeRunEvent
  /** Length of its frame, as last encoded. */
  bytes: number
}

/** Stands in for an acknowledged event until the array is shortened, so that its text can be collected. */
const FORGOTTEN: KeptEvent = { event: { type: "usage", usage: {} }, bytes: 0 }

/** The largest seq that the wire can carry. */
const MAX_SEQ = 0xffff_ffff

/** See the file's head. */
export class RunOutbox {
  readonly #encode: EncodeEvent
  readonly #kept: Array<KeptEvent> = []
  /** Index in `#kept` of the oldest event; the array is shortened now and then, not at each ack. */
  #head = 0
  /** Index in `#kept` of the first event that this link has not been given. */
  #unsent = 0
  #keptBytes = 0
  #inFlightBytes = 0
  #lastSeq = 0
  #ackedSeq = 0
  #handle: number
  #window: number
  #send: SendFrame | undefined
  #terminal = false
  #roomWaiter: (() => void) | undefined

  /** `window` is in bytes of frames; `send` belongs to the link on which `handle` is valid. */
  constructor(options: {
    readonly encode: EncodeEvent
    readonly handle: number
    readonly window: number
    readonly send: SendFrame
  }) {
    this.#encode = options.encode
    this.#handle = options.handle
    this.#window = options.window
    this.#send = options.send
  }

  /** The seq of the last event that was taken; 0 before the first. */
  get lastSeq(): number {
    return this.#lastSeq
  }

  /** The seq of the first event that was not acknowledged; `lastSeq + 1` if there is none. */
  get firstUnackedSeq(): number {
    return this.#ackedSeq + 1
  }

  /** The run's handle on its current or last link. */
  get handle(): number {
    return this.#handle
  }

  /** Whether the terminal event was taken: nothing more may be offered. */
  get ended(): boolean {
    return this.#terminal
  }

  /** Whether the edge has everything, the terminal event included: the run can be forgotten. */
  get settled(): boolean {
    return this.#terminal && this.#ackedSeq === this.#lastSeq
  }

  /** Bytes of the frames that are kept. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** Whether one more event can be numbered and still leave a number for the terminal one. */
  get canNumberMore(): boolean {
    return this.#lastSeq < MAX_SEQ - 1
  }

  /**
   * Takes an event if the window has room for it: numbers, keeps and sends it. False: wait for `onRoom` and offer
   * it again. A terminal event is always taken, since it is the last one and a run must be able to end.
   * Throws if the run has already ended.
   */
  offer(event: NodeRunEvent): boolean {
    if (this.#terminal) throw new Error("an event was offered after the run's terminal event")
    const seq = this.#lastSeq + 1
    const frame = this.#encode(this.#handle, seq, event)
    const terminal = isTerminal(event)
    if (!terminal && this.#keptBytes > 0 && this.#keptBytes + frame.length > this.#window) return false
    this.#lastSeq = seq
    this.#terminal = terminal
    const sendable =
      this.#send !== undefined && this.#unsent === this.#kept.length && this.#fits(frame.length)
    this.#kept.push({ event, bytes: frame.length })
    this.#keptBytes += frame.length
    if (sendable) {
      this.#unsent = this.#kept.length
      this.#inFlightBytes += frame.length
      this.#send?.(frame)
    }
    return true
  }

  /**
   * Calls back once, as soon as an acknowledgement makes room. One waiter at a time: a run has one producer.
   * Returns a function that withdraws the callback.
   */
  onRoom(callback: () => void): () => void {
    this.#roomWaiter = callback
    return () => {
      if (this.#roomWaiter === callback) this.#roomWaiter = undefined
    }
  }

  /** The edge has everything up to `seq`. Old and repeated acknowledgements are harmless; one from the future is not ours: false. */
  ack(seq: number): boolean {
    if (seq > this.#ackedSeq + (this.#unsent - this.#head)) return false
    if (seq <= this.#ackedSeq) return true
    for (; this.#ackedSeq < seq; this.#ackedSeq++) {
      const kept = this.#kept[this.#head]
      if (kept === undefined) break
      this.#keptBytes -= kept.bytes
      this.#inFlightBytes -= kept.bytes
      this.#kept[this.#head++] = FORGOTTEN
    }
    this.#compact()
    this.#pump()
    const waiter = this.#roomWaiter
    if (waiter !== undefined && (this.#keptBytes === 0 || this.#keptBytes < this.#window)) {
      this.#roomWaiter = undefined
      waiter()
    }
    return true
  }

  /** The link is gone: events are kept, up to the window, until `resume`. */
  detach(): void {
    this.#send = undefined
  }

  /**
   * Goes on with a new link: forgets what the edge has (up to `afterSeq`) and sends the rest again under the new
   * handle, within the new window. False if the edge's number can't be: it lies before an earlier acknowledgement
   * or after the last event; then the run can't go on.
   */
  resume(options: {
    readonly afterSeq: number
    readonly handle: number
    readonly window: number
    readonly send: SendFrame
  }): boolean {
    if (options.afterSeq < this.#ackedSeq || options.afterSeq > this.#lastSeq) return false
    this.#handle = options.handle
    this.#window = options.window
    this.#send = options.send
    this.#inFlightBytes = 0
    // What the edge has counts as sent, so that it can be acknowledged below.
    this.#unsent = this.#head + (options.afterSeq - this.#ackedSeq)
    for (let index = this.#head; index < this.#unsent; index++) {
      this.#inFlightBytes += this.#kept[index]?.bytes ?? 0
    }
    this.ack(options.afterSeq)
    this.#pump()
    return true
  }

  #fits(bytes: number): boolean {
    return this.#inFlightBytes === 0 || this.#inFlightBytes + bytes <= this.#window
  }

  /** Sends what is kept and was not sent on this link, as far as the window goes. */
  #pump(): void {
    while (this.#send !== undefined && this.#unsent < this.#kept.length) {
      const kept = this.#kept[this.#unsent]!
      const frame = this.#encode(this.#handle, this.#ackedSeq + 1 + (this.#unsent - this.#head), kept.event)
      if (!this.#fits(frame.length)) return
      this.#keptBytes += frame.length - kept.bytes
      kept.bytes = frame.length
      this.#inFlightBytes += frame.length
      this.#unsent++
      this.#send(frame)
    }
  }

  #compact(): void {
    if (this.#head < 1024 && this.#head < this.#kept.length) return
    this.#kept.splice(0, this.#head)
    this.#unsent -= this.#head
    this.#head = 0
  }
}
