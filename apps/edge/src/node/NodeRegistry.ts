// The connected nodes under two indexes, id and alias. JavaScript runs one callback at a time, so that every method
// here is atomic; the maps themselves are never handed out.
import { Context, Effect, Layer } from "effect"
import type { CircuitLimits } from "./Circuit.ts"
import { NodeConfigs } from "./NodeConfigs.ts"
import { NodeEntry } from "./NodeEntry.ts"
import type { NodeLink } from "./NodeLink.ts"
import type { NodeRecord } from "./NodeRecord.ts"
import type { NodeStatus } from "./NodeStatus.ts"
import { NodeStore } from "./NodeStore.ts"
import { Timers } from "./Timers.ts"

/** What happened to a node. */
export type NodeChange =
  | "attached"
  | "detached"
  | "status"
  | "suspect"
  | "alive"
  | "cordon"
  | "slot"
  | "circuit"

export class NodeRegistry extends Context.Service<
  NodeRegistry,
  {
    /** Connected nodes, in the order of the store. A new array at each change, never changed itself. */
    readonly connected: () => ReadonlyArray<NodeEntry>
    /** Every node of the store, connected or not, in its order. */
    readonly all: () => ReadonlyArray<NodeEntry>
    /** A connected node by id or by alias. */
    readonly find: (name: string) => NodeEntry | undefined
    /** Any node of the store by id or alias. */
    readonly entry: (name: string) => NodeEntry | undefined
    /** The node has a new link. The link it had is the caller's to end first. */
    readonly attach: (record: NodeRecord, link: NodeLink) => NodeEntry
    /** The link is over; nothing happens when the node already has another. */
    readonly detach: (link: NodeLink, nodeId: string, reason: string, mayResume: boolean) => void
    readonly setStatus: (entry: NodeEntry, link: NodeLink, status: NodeStatus) => void
    readonly setSuspect: (entry: NodeEntry, link: NodeLink, suspect: boolean) => void
    readonly setCordoned: (entry: NodeEntry, cordoned: boolean) => void
    /** Says that something about the entry changed that only its owner can see, such as its circuit. */
    readonly touch: (entry: NodeEntry, change: NodeChange) => void
    /** Calls back at every change until the returned function is called. */
    readonly watch: (listener: (entry: NodeEntry, change: NodeChange) => void) => () => void
  }
>()("@iop/edge/node/NodeRegistry") {
  static readonly layer = (limits: CircuitLimits) =>
    Layer.effect(
      NodeRegistry,
      Effect.gen(function* () {
        const store = yield* NodeStore
        const configs = yield* NodeConfigs
        const timers = yield* Timers
        return makeNodeRegistry(store, (record) => configs.of(record).revision, limits, timers.now)
      })
    )
}

/** The registry over the records of the store. `now` is the monotonic clock in milliseconds. */
export const makeNodeRegistry = (
  store: NodeStore["Service"],
  revisionOf: (record: NodeRecord) => string,
  limits: CircuitLimits,
  now: () => number
): NodeRegistry["Service"] => {
  const listeners = new Set<(entry: NodeEntry, change: NodeChange) => void>()
  const touch = (entry: NodeEntry, change: NodeChange) => {
    for (const listener of [...listeners]) listener(entry, change)
  }
  const all = store.records.map(
    (record) => new NodeEntry(record, revisionOf(record), limits, (entry) => touch(entry, "slot"))
  )
  const entries = new Map(all.map((entry) => [entry.record.id as string, entry]))
  const byId = new Map<string, NodeEntry>()
  const byAlias = new Map<string, NodeEntry>()
  let connected: ReadonlyArray<NodeEntry> = []
  const reindex = () => {
    connected = all.filter((entry) => byId.has(entry.record.id))
  }
  const entryOf = (name: string) => {
    const record = store.findByName(name)
    return record === undefined ? undefined : entries.get(record.id)
  }
  return {
    connected: () => connected,
    all: () => all,
    find: (name) => byId.get(name) ?? byAlias.get(name),
    entry: entryOf,
    attach: (record, link) => {
      const entry = entries.get(record.id)
      if (entry === undefined) throw new Error(`node ${record.id} is not in the store`)
      entry.link = link
      entry.status = undefined
      entry.suspect = false
      entry.connectedSince = new Date()
      byId.set(record.id, entry)
      byAlias.set(record.alias, entry)
      reindex()
      touch(entry, "attached")
      return entry
    },
    detach: (link, nodeId, reason, mayResume) => {
      const entry = byId.get(nodeId)
      if (entry === undefined || entry.link !== link) return
      entry.link = undefined
      entry.status = undefined
      entry.suspect = false
      entry.connectedSince = undefined
      entry.lastDisconnect = { at: now(), time: new Date(), reason, mayResume }
      byId.delete(entry.record.id)
      byAlias.delete(entry.record.alias)
      reindex()
      touch(entry, "detached")
    },
    setStatus: (entry, link, status) => {
      if (entry.link !== link) return
      entry.status = status
      touch(entry, "status")
    },
    setSuspect: (entry, link, suspect) => {
      if (entry.link !== link || entry.suspect === suspect) return
      entry.suspect = suspect
      touch(entry, suspect ? "suspect" : "alive")
    },
    setCordoned: (entry, cordoned) => {
      if (entry.cordoned === cordoned) return
      entry.cordoned = cordoned
      touch(entry, "cordon")
    },
    touch,
    watch: (listener) => {
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
      }
    }
  }
}
