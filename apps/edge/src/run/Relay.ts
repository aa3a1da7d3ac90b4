// The bounded log of one run's events from which its consumers read, each at its own pace. The owner (who submitted
// the run and waits for it) holds the run back when it is slow; observers never do, they fall out of the log.
import type { TextDelta } from "@iop/platform-common/protocol/RunEvent"
import type { RelayedEvent, RunEvent } from "./RunEvent.ts"
import type { RunFailure } from "./RunFailure.ts"

export interface RelayLimits {
  /** Bytes of the log, counted as frame bytes plus a constant per event. May fall while many runs share a budget. */
  readonly logBytes: number
  /** A reader that takes nothing for this long, though there is something, is ended; milliseconds. */
  readonly consumerMs: number
}

export interface RelayHost {
  readonly now: () => number
  readonly after: (ms: number, callback: () => void) => () => void
  /** The owner took something or left: what was held back for it may be acknowledged. */
  readonly ownerRead: () => void
  /** A reader left by itself. */
  readonly left: (reader: RelayReader) => void
  /** A reader was ended because it fell behind. */
  readonly slow: (reader: RelayReader, failure: RunFailure) => void
}

/** What an entry costs beyond its frame: the event object, its wrapper and its place in the log (measured, rounded up). */
const ENTRY_OVERHEAD = 96

/** From this much unread on, small pieces of text are joined: a reader that is behind gets them in fewer events. */
const JOIN_FROM_BYTES = 16 * 1024
/** The most that is joined into one event, in UTF-16 code units: what a reader takes stays of a handy size. */
const MAX_JOINED_UNITS = 8 * 1024
/** Pieces that are kept apart before they are joined: joining one by one would keep a chain of them. */
const PIECES = 32

/** What one `take` returns at most, so that a reader far behind does not build one huge string. */
const DEFAULT_TAKE_BYTES = 64 * 1024

/** After an alarm the sockets get one turn before anybody is blamed: the process itself may have been paused. */
const SECOND_LOOK_MS = 1

interface Entry extends RelayedEvent {
  /** All bytes of the relay up to and including this event. */
  readonly end: number
}

export class Relay {
  readonly #limits: RelayLimits
  readonly #host: RelayHost
  /** `#log[#head]` is the oldest kept entry; the rest before it is compacted now and then. */
  #log: Array<Entry> = []
  #head = 0
  #total = 0
  #evicted = 0
  #lastSeq = 0
  #sealed = false
  /** Pieces of text that belong to the last entry and are not in it yet. */
  #pieces: Array<string> = []
  #pieceUnits = 0
  /** The newest event that any reader has taken: it can't be added to. */
  #taken = 0
  #owner: RelayReader | undefined
  readonly #readers = new Set<RelayReader>()

  constructor(limits: RelayLimits, host: RelayHost) {
    this.#limits = limits
    this.#host = host
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  /** Seq of the oldest event that is kept; lastSeq + 1 when none is. */
  get firstSeq(): number {
    return this.#log[this.#head]?.seq ?? this.#lastSeq + 1
  }

  /** Bytes that the log holds. */
  get bytes(): number {
    return this.#total - this.#evicted
  }

  get sealed(): boolean {
    return this.#sealed
  }

  /** Whether the owner is so far behind that nothing more may be acknowledged. */
  get ownerBehind(): boolean {
    return this.#owner !== undefined && this.#total - this.#owner.offset > this.#limits.logBytes
  }

  get readers(): number {
    return this.#readers.size
  }

  /** Adds an event; `bytes` is its frame's length. Readers are told by `wake`. */
  append(event: RunEvent, bytes: number): void {
    if (this.#sealed || this.#joined(event, bytes)) return
    this.#flushPieces()
    this.#total += bytes + ENTRY_OVERHEAD
    this.#lastSeq += 1
    this.#log.push({ seq: this.#lastSeq, event, end: this.#total })
    if (this.bytes > this.#limits.logBytes) this.#evict()
  }

  /** Tells the readers that have something to read. Called once per read of the link, not once per event. */
  wake(): void {
    for (const reader of this.#readers) reader.wake()
  }

  /** Nothing will be added. */
  seal(): void {
    this.#sealed = true
  }

  /** Forgets the log: the history needs the room. Only for sealed relays without readers. */
  drop(): void {
    this.#pieces = []
    this.#pieceUnits = 0
    this.#log = []
    this.#head = 0
    this.#evicted = this.#total
  }

  /**
   * A reader from the event after `after` (0: from the first). Undefined when that event is no longer kept.
   */
  reader(after: number, owner: boolean): RelayReader | undefined {
    this.#flushPieces()
    if (after + 1 < this.firstSeq || after > this.#lastSeq) return undefined
    this.#taken = Math.max(this.#taken, after)
    const offset = this.#at(after)?.end ?? this.#evicted
    const reader = new RelayReader(
      this,
      this.#host,
      this.#limits,
      after,
      after === this.#lastSeq ? this.#total : offset
    )
    this.#readers.add(reader)
    if (owner) this.#owner = reader
    reader.watch()
    return reader
  }

  /** For readers: the events after `seq`, about `maxBytes` of them. */
  slice(
    seq: number,
    maxBytes: number
  ): { readonly events: ReadonlyArray<RelayedEvent>; readonly offset: number } {
    this.#flushPieces()
    const first = this.#log[this.#head]
    if (first === undefined || seq >= this.#lastSeq) return { events: [], offset: this.#total }
    let index = this.#head + (seq + 1 - first.seq)
    const start = this.#log[index - 1]?.end ?? this.#evicted
    const events: Array<RelayedEvent> = []
    let offset = start
    while (index < this.#log.length && (events.length === 0 || offset - start < maxBytes)) {
      const entry = this.#log[index]!
      events.push(entry)
      offset = entry.end
      index += 1
    }
    return { events, offset }
  }

  /** For readers: what was taken may make room. */
  taken(reader: RelayReader): void {
    this.#taken = Math.max(this.#taken, reader.position)
    if (this.#owner !== reader) return
    if (this.bytes > this.#limits.logBytes) this.#evict()
    this.#host.ownerRead()
  }

  /** For readers: it reads no more. */
  remove(reader: RelayReader): void {
    this.#readers.delete(reader)
    if (this.#owner === reader) {
      this.#owner = undefined
      if (this.bytes > this.#limits.logBytes) this.#evict()
      this.#host.ownerRead()
    }
  }

  /** Adds a piece of text to the last event when the owner is behind and nobody has seen that one. */
  #joined(event: RunEvent, bytes: number): boolean {
    if (this.#owner === undefined || this.#total - this.#owner.offset < JOIN_FROM_BYTES) return false
    const last = this.#log[this.#log.length - 1]
    if (last === undefined || last.seq <= this.#taken || !isPlainText(event) || !isPlainText(last.event))
      return false
    if (last.event.kind !== event.kind || last.event.choice !== event.choice) return false
    if (last.event.text.length + this.#pieceUnits + event.text.length > MAX_JOINED_UNITS) return false
    this.#total += bytes
    this.#pieceUnits += event.text.length
    this.#pieces.push(event.text)
    if (this.#pieces.length >= PIECES) this.#flushPieces()
    return true
  }

  #flushPieces(): void {
    if (this.#pieces.length === 0) return
    const last = this.#log[this.#log.length - 1]
    if (last !== undefined && isPlainText(last.event)) {
      const text = last.event.text + this.#pieces.join("")
      this.#log[this.#log.length - 1] = { seq: last.seq, event: { ...last.event, text }, end: this.#total }
    }
    this.#pieces = []
    this.#pieceUnits = 0
  }

  #at(seq: number): Entry | undefined {
    const first = this.#log[this.#head]
    return first === undefined || seq < first.seq ? undefined : this.#log[this.#head + (seq - first.seq)]
  }

  #evict(): void {
    this.#flushPieces()
    const keepFrom = this.#owner === undefined ? Number.POSITIVE_INFINITY : this.#owner.position + 1
    let oldest = this.#log[this.#head]
    while (oldest !== undefined && oldest.seq < keepFrom && this.bytes > this.#limits.logBytes) {
      this.#evicted = oldest.end
      this.#head += 1
      oldest = this.#log[this.#head]
    }
    if (this.#head > 1024 && this.#head * 2 > this.#log.length) {
      this.#log = this.#log.slice(this.#head)
      this.#head = 0
    }
    const first = this.firstSeq
    for (const reader of [...this.#readers]) {
      if (reader.position + 1 < first && this.#owner !== reader) {
        reader.fail(
          `the reader fell more than ${this.#limits.logBytes} bytes behind the run; read again from event ${first}`
        )
      }
    }
  }
}

const isPlainText = (event: RunEvent): event is TextDelta =>
  event.type === "delta" &&
  (event.kind === "text" || event.kind === "reasoning" || event.kind === "refusal") &&
  event.logprobs === undefined

/** One consumer's place in a relay. */
export class RelayReader {
  readonly #relay: Relay
  readonly #host: RelayHost
  readonly #limits: RelayLimits
  #position: number
  #offset: number
  #closed = false
  #failure: RunFailure | undefined
  #ready: (() => void) | undefined
  #takenAt: number
  #alarm: (() => void) | undefined

  constructor(relay: Relay, host: RelayHost, limits: RelayLimits, position: number, offset: number) {
    this.#relay = relay
    this.#host = host
    this.#limits = limits
    this.#position = position
    this.#offset = offset
    this.#takenAt = host.now()
  }

  /** Seq of the last event that was taken. */
  get position(): number {
    return this.#position
  }

  /** Bytes of the relay up to that event. */
  get offset(): number {
    return this.#offset
  }

  readonly take = (maxBytes: number = DEFAULT_TAKE_BYTES): ReadonlyArray<RelayedEvent> => {
    if (this.#closed) return []
    this.#takenAt = this.#host.now()
    const { events, offset } = this.#relay.slice(this.#position, maxBytes)
    const last = events[events.length - 1]
    if (last !== undefined) {
      this.#position = last.seq
      this.#offset = offset
      this.#relay.taken(this)
      // Who has everything need not say that it leaves.
      if (this.done()) this.#leave()
    }
    return events
  }

  readonly onReady = (callback: () => void): void => {
    if (this.done() || this.#relay.lastSeq > this.#position) callback()
    else this.#ready = callback
  }

  readonly done = (): boolean => this.#closed || (this.#relay.sealed && this.#position >= this.#relay.lastSeq)

  readonly failure = (): RunFailure | undefined => this.#failure

  readonly close = (): void => {
    if (this.#closed) return
    this.#end()
    this.#host.left(this)
  }

  /** Ends this reader alone. */
  fail(message: string): void {
    if (this.#closed) return
    this.#failure = { code: "slow_consumer", message, retryable: false }
    this.#end()
    this.#host.slow(this, this.#failure)
  }

  /** There may be something to read. */
  wake(): void {
    if (!this.done() && this.#relay.lastSeq <= this.#position) return
    this.watch()
    const ready = this.#ready
    this.#ready = undefined
    ready?.()
  }

  /** Starts the clock of a reader that has something to take. */
  watch(): void {
    if (this.#alarm !== undefined || this.#closed || this.#relay.lastSeq <= this.#position) return
    this.#takenAt = this.#host.now()
    this.#arm(this.#limits.consumerMs, false)
  }

  #arm(ms: number, second: boolean): void {
    this.#alarm = this.#host.after(ms, () => {
      this.#alarm = undefined
      if (this.#closed || this.#relay.lastSeq <= this.#position) return
      const idle = this.#host.now() - this.#takenAt
      if (idle < this.#limits.consumerMs) this.#arm(this.#limits.consumerMs - idle, false)
      else if (!second) this.#arm(SECOND_LOOK_MS, true)
      else
        this.fail(
          `the reader took nothing for ${(idle / 1000).toFixed(1)} s (limit ${this.#limits.consumerMs / 1000} s)`
        )
    })
  }

  #leave(): void {
    this.#alarm?.()
    this.#alarm = undefined
    this.#relay.remove(this)
  }

  #end(): void {
    this.#closed = true
    this.#leave()
    const ready = this.#ready
    this.#ready = undefined
    ready?.()
  }
}
