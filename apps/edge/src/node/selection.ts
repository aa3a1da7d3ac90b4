// Which node gets a run. A pure function of the registry's entries and the run: it reads and never changes them,
// so that `explain` gives the same answer as a dispatch and every verdict can be tested without a socket.
import type { AdapterLane, NodeEntry } from "./NodeEntry.ts"
import { timeInWords } from "./timeInWords.ts"

/** What a run asks of a node. */
export interface SelectionNeed {
  readonly adapter: string
  readonly target: string
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** The node that served this session before. */
  readonly preferred?: string | undefined
  /** Nodes that already failed this run. */
  readonly excluded?: ReadonlySet<string> | undefined
}

/** Why a node was chosen or not, for programs. */
export type SelectionReason =
  | "chosen"
  | "preferred_other"
  | "no_adapter"
  | "no_target"
  | "labels_differ"
  | "already_tried"
  | "offline"
  | "reconnecting"
  | "suspect"
  | "config_pending"
  | "node_draining"
  | "adapter_starting"
  | "adapter_degraded"
  | "adapter_unavailable"
  | "cordoned"
  | "circuit_open"
  | "circuit_probing"
  | "no_free_slot"

/** Reasons that pass by themselves: a run waits for such a node instead of being refused. */
const passing: ReadonlySet<SelectionReason> = new Set([
  "reconnecting",
  "suspect",
  "config_pending",
  "adapter_starting",
  "circuit_probing",
  "no_free_slot"
])

/** Whether a node may serve the run without anybody doing something about it. */
export const isPassing = (reason: SelectionReason): boolean => passing.has(reason)

export interface Selection {
  readonly chosen: NodeEntry | undefined
  /** For each entry, in the order they were given, why. */
  readonly reasons: ReadonlyArray<SelectionReason>
}

/** Whether the record could serve the target with the right status: an adapter without a list discovers its targets. */
export const couldServe = (entry: NodeEntry, need: SelectionNeed): boolean => {
  const adapter = entry.adapter(need.adapter)
  if (adapter === undefined || !labelsMatch(entry, need)) return false
  if (adapter.targets.length > 0) return adapter.targets.includes(need.target)
  const known = entry.link === undefined ? undefined : entry.status?.adapters.get(need.adapter)
  return known === undefined || known.state !== "ready" || known.targets.some((t) => t.name === need.target)
}

const labelsMatch = (entry: NodeEntry, need: SelectionNeed): boolean => {
  if (need.labels === undefined) return true
  for (const key in need.labels) {
    if (entry.record.labels[key] !== need.labels[key]) return false
  }
  return true
}

/** How long a lost node may still come back with its runs; see `resume_grace`. */
export interface SelectionClock {
  /** Monotonic milliseconds. */
  readonly now: number
  readonly resumeGraceMs: number
}

/** The reason why the entry can't take the run, or undefined when it can. The order is that of the design. */
const obstacle = (
  entry: NodeEntry,
  lane: Readonly<AdapterLane> | undefined,
  need: SelectionNeed,
  clock: SelectionClock
): SelectionReason | undefined => {
  if (lane === undefined) return "no_adapter"
  const adapter = lane.record
  if (adapter.targets.length > 0 && !adapter.targets.includes(need.target)) return "no_target"
  if (!labelsMatch(entry, need)) return "labels_differ"
  if (need.excluded?.has(entry.record.id) === true) return "already_tried"
  if (entry.link === undefined) {
    const lost = entry.lastDisconnect
    return lost?.mayResume === true && clock.now - lost.at < clock.resumeGraceMs ? "reconnecting" : "offline"
  }
  if (entry.suspect) return "suspect"
  const status = entry.status
  if (status === undefined || status.revision !== entry.revision) return "config_pending"
  if (status.draining) return "node_draining"
  const state = status.adapters.get(need.adapter)
  if (state === undefined) return "config_pending"
  if (state.state !== "ready") return `adapter_${state.state}`
  if (!state.targets.some((target) => target.name === need.target)) return "no_target"
  if (entry.cordoned) return "cordoned"
  const circuit = lane.circuit.at(clock.now)
  if (circuit.state === "open") return "circuit_open"
  if (circuit.state === "probing") return "circuit_probing"
  if (lane.inUse >= adapter.slots || !entry.hasRoom) return "no_free_slot"
  return undefined
}

/**
 * Chooses the node for a run: of those that can take it the one that served its session, else the least loaded by
 * slots in use / slots, else the one used longest ago.
 */
export const select = (
  entries: ReadonlyArray<NodeEntry>,
  need: SelectionNeed,
  clock: SelectionClock
): Selection => {
  const reasons: Array<SelectionReason> = new Array(entries.length)
  let best = -1
  let bestLoad = Number.POSITIVE_INFINITY
  let bestDispatch = Number.POSITIVE_INFINITY
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i]!
    const lane = entry.lane(need.adapter)
    const reason = obstacle(entry, lane, need, clock)
    if (reason !== undefined || lane === undefined) {
      reasons[i] = reason ?? "no_adapter"
      continue
    }
    reasons[i] = "preferred_other"
    const load = entry.record.id === need.preferred ? -1 : lane.inUse / lane.record.slots
    if (load < bestLoad || (load === bestLoad && entry.lastDispatch < bestDispatch)) {
      best = i
      bestLoad = load
      bestDispatch = entry.lastDispatch
    }
  }
  if (best < 0) return { chosen: undefined, reasons }
  reasons[best] = "chosen"
  return { chosen: entries[best], reasons }
}

/** The reason as a sentence for a person, with the figures behind it. */
export const describeReason = (
  entry: NodeEntry,
  need: SelectionNeed,
  reason: SelectionReason,
  clock: SelectionClock
): string => {
  const adapterStatus = entry.status?.adapters.get(need.adapter)
  const because = (text: string | undefined) => (text === undefined || text === "" ? "" : `: ${text}`)
  switch (reason) {
    case "chosen":
      return need.preferred === entry.record.id
        ? "chosen: it served this session before"
        : `chosen: ${slotText(entry, need.adapter)}`
    case "preferred_other":
      return `could take it too (${slotText(entry, need.adapter)})`
    case "no_adapter":
      return `has no adapter ${need.adapter}`
    case "no_target":
      return `its adapter ${need.adapter} does not offer ${need.target}`
    case "labels_differ":
      return `its labels do not match ${Object.entries(need.labels ?? {})
        .map(([key, value]) => `${key}=${value}`)
        .join(", ")}`
    case "already_tried":
      return "this run already failed here"
    case "offline":
      return entry.lastDisconnect === undefined
        ? "has not connected since the edge started"
        : `offline for ${timeInWords(clock.now - entry.lastDisconnect.at)}${because(entry.lastDisconnect.reason)}`
    case "reconnecting":
      return `link lost ${Math.round((clock.now - (entry.lastDisconnect?.at ?? clock.now)) / 1000)} s ago${because(entry.lastDisconnect?.reason)}; it may come back`
    case "suspect":
      return "misses heartbeats"
    case "config_pending":
      return "has not applied its configuration yet"
    case "node_draining":
      return "is stopping and takes no new run"
    case "adapter_starting":
      return `adapter ${need.adapter} is starting${because(adapterStatus?.reason)}`
    case "adapter_degraded":
      return `adapter ${need.adapter} is degraded${because(adapterStatus?.reason)}`
    case "adapter_unavailable":
      return `adapter ${need.adapter} is unavailable${because(adapterStatus?.reason)}`
    case "cordoned":
      return "is cordoned: an operator keeps new runs away"
    case "circuit_open":
    case "circuit_probing": {
      const circuit = entry.circuit(need.adapter)?.at(clock.now)
      if (circuit?.state === "open") {
        return `failed fast too often, is tried again in ${Math.ceil(circuit.retryInMs / 1000)} s${because(circuit.reason)}`
      }
      return "failed fast too often, a single run tries it now"
    }
    case "no_free_slot":
      return `all slots are taken (${slotText(entry, need.adapter)})`
  }
}

const slotText = (entry: NodeEntry, adapter: string): string => {
  const { total, inUse } = entry.slots(adapter)
  const { slots } = entry.record.runtime
  const node = slots === undefined ? "" : `, ${entry.slotsInUse} of ${slots} on the node`
  return `${inUse} of ${total} slots in use${node}`
}
