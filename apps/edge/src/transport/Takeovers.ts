// A second process with a node's token while the first is connected. The first is asked whether it lives; only its
// silence lets the newcomer in. One newcomer per node waits at a time, so that two of them cannot push each other.
import { timingSafeEqual } from "node:crypto"
import type { NodeRecord } from "../node/NodeRecord.ts"
import type { Timers } from "../node/Timers.ts"
import { stoodStill } from "./heartbeat.ts"

/** The present link of the node. */
export interface Incumbent {
  readonly remote: string
  onNextFrame: (() => void) | undefined
  readonly ping: () => void
  readonly end: (code: "taken_over", message: string) => void
}

/** Whoever waits for the answer. Exactly one of the callbacks is called, at most once, unless it was withdrawn. */
export interface Newcomer {
  readonly bootId: Uint8Array
  readonly remote: string
  /** The node has no link now: register. */
  readonly admit: () => void
  /** Somebody else has the identity, from `address`. */
  readonly refuse: (address: string) => void
  /** A newer connection of the same process took the place. */
  readonly superseded: () => void
}

interface Probe {
  newcomer: Newcomer
  readonly stop: () => void
}

export const sameBootId = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && timingSafeEqual(a, b)

/** An incumbent that answered is not asked again so soon: newcomers by the thousand must not keep it busy. */
const PROBE_REST_MS = 1000

export class Takeovers {
  readonly #timers: Timers["Service"]
  readonly #probeMs: number
  readonly #probes = new Map<string, Probe>()
  /** When an incumbent last answered a probe, by node. */
  readonly #answered = new Map<string, { readonly incumbent: Incumbent; readonly at: number }>()

  /** @param probeMs how long the incumbent may take to answer */
  constructor(timers: Timers["Service"], probeMs: number) {
    this.#timers = timers
    this.#probeMs = probeMs
  }

  /** Newcomers that wait now. */
  get size(): number {
    return this.#probes.size
  }

  /** The newcomer wants the identity of a connected node. */
  ask(record: NodeRecord, incumbent: Incumbent, newcomer: Newcomer): void {
    const answered = this.#answered.get(record.id)
    if (answered?.incumbent === incumbent && this.#timers.now() - answered.at < PROBE_REST_MS) {
      newcomer.refuse(incumbent.remote)
      return
    }
    const present = this.#probes.get(record.id)
    if (present !== undefined) {
      if (!sameBootId(present.newcomer.bootId, newcomer.bootId)) {
        newcomer.refuse(incumbent.remote)
        return
      }
      const before = present.newcomer
      present.newcomer = newcomer
      before.superseded()
      return
    }
    this.#probe(record, incumbent, newcomer)
  }

  /** The newcomer left by itself. */
  withdraw(nodeId: string, newcomer: Newcomer): void {
    if (this.#probes.get(nodeId)?.newcomer === newcomer) this.#take(nodeId)
  }

  /** The incumbent proved that it lives in another way: whoever waits is refused in favour of `address`. */
  refuseWaiting(nodeId: string, address: string): void {
    this.#take(nodeId)?.refuse(address)
  }

  /** The node lost its link: whoever waits gets in. */
  incumbentGone(nodeId: string): void {
    this.#answered.delete(nodeId)
    this.#take(nodeId)?.admit()
  }

  #probe(record: NodeRecord, incumbent: Incumbent, newcomer: Newcomer): void {
    let cancelTimer = () => {}
    let stopped = false
    const answered = () => {
      this.#answered.set(record.id, { incumbent, at: this.#timers.now() })
      this.refuseWaiting(record.id, incumbent.remote)
    }
    const probe: Probe = {
      newcomer,
      stop: () => {
        stopped = true
        cancelTimer()
        if (incumbent.onNextFrame === answered) incumbent.onNextFrame = undefined
      }
    }
    this.#probes.set(record.id, probe)
    const wait = () => {
      const dueAt = this.#timers.now() + this.#probeMs
      cancelTimer = this.#timers.after(this.#probeMs, () => {
        // An answer may lie in the socket already: it is read before anything is judged.
        setImmediate(() => {
          if (stopped) return
          if (stoodStill(dueAt, this.#timers.now(), this.#probeMs)) wait()
          // The end of the link lets the newcomer in.
          else incumbent.end("taken_over", takenOverText(this.#probeMs, probe.newcomer.remote))
        })
      })
    }
    incumbent.ping()
    // What had come before the question is no answer to it: the sockets are read out first.
    setImmediate(() => {
      if (stopped) return
      incumbent.onNextFrame = answered
      wait()
    })
  }

  #take(nodeId: string): Newcomer | undefined {
    const probe = this.#probes.get(nodeId)
    if (probe === undefined) return undefined
    this.#probes.delete(nodeId)
    probe.stop()
    return probe.newcomer
  }
}

const takenOverText = (probeMs: number, by: string): string =>
  `this process did not answer for ${probeMs} ms and another one with the same token, at ${by}, took its place`
