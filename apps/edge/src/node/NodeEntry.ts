// A node at run time: its record, its link while it has one, what it said about itself, and the slots that the
// edge has given away on it. The entry outlives a link, because slots, circuits and a cordon do.

import { Circuit, type CircuitLimits } from "./Circuit.ts"
import type { NodeLink } from "./NodeLink.ts"
import type { AdapterRecord, NodeRecord } from "./NodeRecord.ts"
import type { NodeStatus } from "./NodeStatus.ts"

/** How the node was last lost. */
export interface Disconnect {
  /** Monotonic milliseconds. */
  readonly at: number
  /** Wall clock, for people. */
  readonly time: Date
  /** For a person: reset, heartbeats missed, replaced, drained. */
  readonly reason: string
  /** Whether the same process may come back and go on with its runs. */
  readonly mayResume: boolean
}

/** The right to have one run in flight on an adapter of a node. Releasing twice releases once. */
export interface SlotClaim {
  readonly entry: NodeEntry
  readonly adapter: string
  /** Whether the run tries a half-open circuit. */
  readonly probe: boolean
  readonly release: () => void
}

/** What can be seen of an adapter's slots. */
export interface SlotUse {
  readonly total: number
  readonly inUse: number
}

export class NodeEntry {
  readonly record: NodeRecord
  /** The revision of the configuration that the node was sent. */
  readonly revision: string
  link: NodeLink | undefined
  status: NodeStatus | undefined
  /** Two heartbeats missed: no new run until it answers. */
  suspect = false
  cordoned = false
  /** Wall clock of the present link's registration. */
  connectedSince: Date | undefined
  lastDisconnect: Disconnect | undefined
  /** Grows with every dispatch of the edge: the smallest was used longest ago. */
  lastDispatch = 0
  #slotsInUse = 0
  readonly #use = new Map<string, number>()
  readonly #adapters: ReadonlyMap<string, AdapterRecord>
  readonly #circuits: ReadonlyMap<string, Circuit>
  readonly #released: (entry: NodeEntry) => void

  constructor(
    record: NodeRecord,
    revision: string,
    limits: CircuitLimits,
    released: (entry: NodeEntry) => void
  ) {
    this.record = record
    this.revision = revision
    this.#adapters = new Map(record.adapters.map((adapter) => [adapter.name, adapter]))
    this.#circuits = new Map(record.adapters.map((adapter) => [adapter.name, new Circuit(limits)]))
    this.#released = released
  }

  adapter(name: string): AdapterRecord | undefined {
    return this.#adapters.get(name)
  }

  circuit(adapter: string): Circuit | undefined {
    return this.#circuits.get(adapter)
  }

  slots(adapter: string): SlotUse {
    return { total: this.#adapters.get(adapter)?.slots ?? 0, inUse: this.#use.get(adapter) ?? 0 }
  }

  /** Slots in use / slots, 0 to 1. */
  load(adapter: string): number {
    const total = this.#adapters.get(adapter)?.slots ?? 0
    return total === 0 ? 1 : (this.#use.get(adapter) ?? 0) / total
  }

  hasFreeSlot(adapter: string): boolean {
    const { slots } = this.record.runtime
    if (slots !== undefined && this.#slotsInUse >= slots) return false
    const total = this.#adapters.get(adapter)?.slots ?? 0
    return (this.#use.get(adapter) ?? 0) < total
  }

  /** Runs in flight on the whole node. */
  get slotsInUse(): number {
    return this.#slotsInUse
  }

  /** Takes a slot, or returns undefined when none is free. */
  claim(adapter: string, now: number, dispatch: number): SlotClaim | undefined {
    if (!this.hasFreeSlot(adapter)) return undefined
    this.lastDispatch = dispatch
    this.#slotsInUse += 1
    this.#use.set(adapter, (this.#use.get(adapter) ?? 0) + 1)
    let held = true
    return {
      entry: this,
      adapter,
      probe: this.#circuits.get(adapter)?.dispatched(now) ?? false,
      release: () => {
        if (!held) return
        held = false
        this.#slotsInUse -= 1
        this.#use.set(adapter, (this.#use.get(adapter) ?? 1) - 1)
        this.#released(this)
      }
    }
  }
}
