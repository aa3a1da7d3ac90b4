// Turns what an adapter yields into what the protocol allows: `started` first and once, one terminal event with
// nothing after it, deltas of whole characters that fit into a frame, one delta at the end for a run that nobody reads along.

import type { NodeRunEvent, UsageEvent } from "@iop/platform-common/protocol/RunEvent"
import { AdapterFailure } from "./Adapter.ts"
import { GatheredDeltas } from "./GatheredDeltas.ts"
import { HalfCharacters } from "./HalfCharacters.ts"
import { splitDelta } from "./splitDelta.ts"

/** The most text of a run that is gathered for a whole answer, in UTF-16 code units: what a node's memory can bear. */
const MAX_GATHERED_UNITS = 16 * 1024 * 1024

/**
 * While a whole answer is gathered the edge hears nothing, and its idle clock (120 s by default) can't tell a backend
 * that works from one that hangs. An empty piece of text says that it works, at most so often, in milliseconds.
 */
const SIGN_OF_LIFE_MS = 10_000

const signOfLife: NodeRunEvent = { type: "delta", choice: 0, kind: "text", text: "" }

/** See the file's head. */
export class EventShaper {
  readonly #stream: boolean
  readonly #now: () => number
  #saidAt: number
  readonly #maxFrameBytes: () => number
  readonly #gathered = new GatheredDeltas()
  readonly #halves = new HalfCharacters()
  #usage: UsageEvent | undefined
  #started = false
  #ended = false

  /** `now` is the monotonic clock in milliseconds. */
  constructor(options: {
    readonly stream: boolean
    readonly maxFrameBytes: () => number
    readonly now: () => number
  }) {
    this.#stream = options.stream
    this.#now = options.now
    this.#saidAt = options.now()
    this.#maxFrameBytes = options.maxFrameBytes
  }

  /** Whether the terminal event was seen. */
  get ended(): boolean {
    return this.#ended
  }

  /** What to send for these events. Throws an `AdapterFailure` if a whole answer outgrows the limit. */
  shape(events: ReadonlyArray<NodeRunEvent>): ReadonlyArray<NodeRunEvent> {
    const out: Array<NodeRunEvent> = []
    for (const event of events) {
      if (this.#ended) break
      this.#shapeOne(event, out)
    }
    return out
  }

  #shapeOne(event: NodeRunEvent, out: Array<NodeRunEvent>): void {
    if (event.type === "started") {
      if (!this.#started) out.push(event)
      this.#started = true
      return
    }
    if (event.type === "failed" || event.type === "cancelled") {
      this.#ended = true
      out.push(event)
      return
    }
    if (!this.#started) {
      this.#started = true
      out.push({ type: "started" })
    }
    if (event.type === "completed") {
      this.#ended = true
      for (const delta of [...this.#halves.take(), ...this.#gathered.take()])
        out.push(...splitDelta(delta, this.#maxFrameBytes()))
      if (this.#usage !== undefined) out.push(this.#usage)
      out.push(event)
      return
    }
    if (this.#stream) {
      const whole = event.type === "delta" ? this.#halves.join(event) : event
      if (whole === undefined) return
      if (whole.type === "delta") out.push(...splitDelta(whole, this.#maxFrameBytes()))
      else out.push(whole)
      return
    }
    if (event.type === "usage") {
      this.#usage = event
      return
    }
    this.#gathered.add(event)
    if (this.#gathered.size > MAX_GATHERED_UNITS) {
      throw new AdapterFailure({
        code: "limit",
        message: `the answer is longer than ${MAX_GATHERED_UNITS} characters, which is the most that can be given whole; ask for a stream`,
        retryable: false
      })
    }
    const now = this.#now()
    if (now - this.#saidAt < SIGN_OF_LIFE_MS) return
    this.#saidAt = now
    out.push(signOfLife)
  }
}
