// One run as the scripted edge sees it: checks the order of its events, acknowledges them and gives them to a test.

import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { isTerminal } from "@iop/platform-common/protocol/RunEvent"
import { Effect, Queue } from "effect"

/** How a scripted edge gives a run to a node. */
export interface ScriptedRunIdentity {
  readonly runId: string
  readonly attempt: number
}

/** See the file's head. */
export class ScriptedRun implements ScriptedRunIdentity {
  readonly runId: string
  readonly attempt: number
  /** The run's handle on its current link. */
  handle: number
  /** Every event, once, in order. */
  readonly received: Array<NodeRunEvent> = []
  /** Seqs that came again. A resumption repeats events; otherwise there are none. */
  readonly repeated: Array<number> = []
  /** What broke the protocol: gaps, events after the terminal one. */
  readonly violations: Array<string> = []
  /** Bytes of frames that were not acknowledged, at their highest. */
  maxUnackedBytes = 0
  /** Whether each event is acknowledged as it comes. */
  autoAck: boolean
  readonly #queue = Effect.runSync(Queue.unbounded<NodeRunEvent>())
  readonly #unacked: Array<{ readonly seq: number; readonly bytes: number }> = []
  #lastSeq = 0
  #ack: (handle: number, seq: number) => void

  constructor(
    identity: ScriptedRunIdentity,
    handle: number,
    autoAck: boolean,
    ack: (handle: number, seq: number) => void
  ) {
    this.runId = identity.runId
    this.attempt = identity.attempt
    this.handle = handle
    this.autoAck = autoAck
    this.#ack = ack
  }

  /** The seq of the last event that came. */
  get lastSeq(): number {
    return this.#lastSeq
  }

  /** Forgets every event after `seq`, as an edge does whose process was replaced by another. */
  rewind(seq: number): void {
    this.#lastSeq = seq
    this.received.length = seq
  }

  /** Bytes of frames that came and were not acknowledged. */
  get unackedBytes(): number {
    return this.#unacked.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** The next event that was not taken yet. */
  get next(): Effect.Effect<NodeRunEvent> {
    return Queue.take(this.#queue)
  }

  /** All events from the next one up to the terminal one. */
  get toEnd(): Effect.Effect<ReadonlyArray<NodeRunEvent>> {
    const run = this
    return Effect.gen(function* () {
      const events: Array<NodeRunEvent> = []
      while (true) {
        const event = yield* run.next
        events.push(event)
        if (isTerminal(event)) return events
      }
    })
  }

  /** Acknowledges everything up to `seq`; by default everything that came. */
  ack(seq = this.lastSeq): void {
    while (this.#unacked[0] !== undefined && this.#unacked[0].seq <= seq) this.#unacked.shift()
    this.#ack(this.handle, seq)
  }

  /** Takes an event off the link; for the link. */
  accept(seq: number, event: NodeRunEvent, bytes: number): void {
    if (seq <= this.lastSeq) {
      this.repeated.push(seq)
      if (this.autoAck) this.ack()
      return
    }
    if (seq !== this.lastSeq + 1) this.violations.push(`event ${seq} came after event ${this.lastSeq}`)
    const last = this.received.at(-1)
    if (last !== undefined && isTerminal(last)) this.violations.push(`${event.type} came after ${last.type}`)
    this.#lastSeq = seq
    this.received.push(event)
    this.#unacked.push({ seq, bytes })
    this.maxUnackedBytes = Math.max(this.maxUnackedBytes, this.unackedBytes)
    Queue.offerUnsafe(this.#queue, event)
    if (this.autoAck) this.ack()
  }

  /** Goes over to a new link; for the link. */
  move(handle: number, ack: (handle: number, seq: number) => void): void {
    this.handle = handle
    this.#ack = ack
    this.#unacked.length = 0
  }
}
