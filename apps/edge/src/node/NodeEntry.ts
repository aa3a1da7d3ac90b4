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

/** One adapter of the node as the selection sees it. */
export interface AdapterLane {
  readonly record: AdapterRecord
  readonly circuit: Circuit
  /** Runs in flight. */
  inUse: number
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
  readonly #lanes: ReadonlyMap<string, AdapterLane>
  readonly #released: (entry: NodeEntry) => void

  constructor(
    record: NodeRecord,
    revision: string,
    limits: CircuitLimits,
    released: (entry: NodeEntry) => void
  ) {
    this.record = record
    this.revision = revision
    this.#lanes = new Map(
      record.adapters.map((adapter) => [
        adapter.name,
        { record: adapter, circuit: new Circuit(limits), inUse: 0 }
      ])
    )
    this.#released = released
  }

  /** The adapter of that name, with what the edge knows about its use. */
  lane(adapter: string): Readonly<AdapterLane> | undefined {
    return this.#lanes.get(adapter)
  }

  adapter(name: string): AdapterRecord | undefined {
    return this.#lanes.get(name)?.record
  }

  circuit(adapter: string): Circuit | undefined {
    return this.#lanes.get(adapter)?.circuit
  }

  slots(adapter: string): SlotUse {
    const lane = this.#lanes.get(adapter)
    return { total: lane?.record.slots ?? 0, inUse: lane?.inUse ?? 0 }
  }

  /** Whether the node as a whole, besides its adapters, has room for a run. */
  get hasRoom(): boolean {
    const { slots } = this.record.runtime
    return slots === undefined || this.#slotsInUse < slots
  }

  /** Runs in flight on the whole node. */
  get slotsInUse(): number {
    return this.#slotsInUse
  }

  /** Takes a slot, or returns undefined when none is free. `dispatch` is the edge's count of dispatches. */
  claim(adapter: string, now: number, dispatch: number): SlotClaim | undefined {
    const lane = this.#lanes.get(adapter)
    if (lane === undefined || !this.hasRoom || lane.inUse >= lane.record.slots) return undefined
    this.lastDispatch = dispatch
    this.#slotsInUse += 1
    lane.inUse += 1
    let held = true
    return {
      entry: this,
      adapter,
      probe: lane.circuit.dispatched(now),
      release: () => {
        if (!held) return
        held = false
        this.#slotsInUse -= 1
        lane.inUse -= 1
        this.#released(this)
      }
    }
  }
}
