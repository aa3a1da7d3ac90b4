// A node as the admin API, the CLI and the console show it.
import { Schema } from "effect"
import type { CircuitState } from "../node/Circuit.ts"
import type { NodeEntry } from "../node/NodeEntry.ts"
import { nodeState, nodeStates } from "./nodeState.ts"

const Slots = Schema.Struct({ total: Schema.Int, in_use: Schema.Int })

export const CircuitView = Schema.Struct({
  state: Schema.Literals(["closed", "open", "half_open", "probing"]),
  reason: Schema.optionalKey(Schema.String),
  retry_in_ms: Schema.optionalKey(Schema.Finite)
}).annotate({ identifier: "Circuit" })

export const AdapterView = Schema.Struct({
  name: Schema.String,
  type: Schema.String,
  state: Schema.Literals(["unknown", "starting", "ready", "degraded", "unavailable"]),
  reason: Schema.String.annotate({ description: "Why the adapter is not ready; empty when it is." }),
  slots: Slots,
  targets: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      capabilities: Schema.Array(Schema.String),
      context_length: Schema.optionalKey(Schema.Finite)
    })
  ),
  circuit: CircuitView
}).annotate({ identifier: "Adapter" })

export const NodeView = Schema.Struct({
  id: Schema.String,
  alias: Schema.String,
  state: Schema.Literals(nodeStates),
  reason: Schema.String.annotate({ description: "The state in words." }),
  labels: Schema.Record(Schema.String, Schema.String),
  cordoned: Schema.Boolean,
  remote: Schema.optionalKey(Schema.String),
  agent: Schema.optionalKey(Schema.String),
  epoch: Schema.optionalKey(Schema.Finite),
  connected_since: Schema.optionalKey(Schema.String),
  last_disconnect: Schema.optionalKey(Schema.Struct({ time: Schema.String, reason: Schema.String })),
  slots_in_use: Schema.Int,
  slots_limit: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Runs in flight on the whole node, where it has a limit of its own."
  }),
  adapters: Schema.Array(AdapterView)
}).annotate({ identifier: "Node" })
export type NodeView = typeof NodeView.Type

/** The entry at `now` (monotonic milliseconds). */
export const nodeView = (entry: NodeEntry, now: number): NodeView => {
  const { record, link, lastDisconnect } = entry
  return {
    id: record.id,
    alias: record.alias,
    ...nodeState(entry, now),
    labels: record.labels,
    cordoned: entry.cordoned,
    ...(link === undefined ? {} : { remote: link.remote, agent: link.agent, epoch: link.epoch }),
    ...(entry.connectedSince === undefined ? {} : { connected_since: entry.connectedSince.toISOString() }),
    ...(lastDisconnect === undefined
      ? {}
      : { last_disconnect: { time: lastDisconnect.time.toISOString(), reason: lastDisconnect.reason } }),
    slots_in_use: entry.slotsInUse,
    ...(record.runtime.slots === undefined ? {} : { slots_limit: record.runtime.slots }),
    adapters: record.adapters.map((adapter) => {
      const status = entry.status?.adapters.get(adapter.name)
      const slots = entry.slots(adapter.name)
      return {
        name: adapter.name,
        type: adapter.type,
        state: status?.state ?? "unknown",
        reason: status?.reason ?? "",
        slots: { total: slots.total, in_use: slots.inUse },
        targets: (status?.targets ?? []).map((target) => ({
          name: target.name,
          capabilities: target.capabilities,
          ...(target.contextLength === undefined ? {} : { context_length: target.contextLength })
        })),
        circuit: circuitView(entry.circuit(adapter.name)?.at(now))
      }
    })
  }
}

const circuitView = (circuit: CircuitState | undefined): typeof CircuitView.Type => {
  if (circuit === undefined || circuit.state === "closed") return { state: "closed" }
  if (circuit.state === "open") {
    return { state: "open", reason: circuit.reason, retry_in_ms: circuit.retryInMs }
  }
  return { state: circuit.state, reason: circuit.reason }
}
