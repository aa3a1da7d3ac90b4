// What a node is good for right now: one word for programs and metrics, one sentence for people.
import type { NodeEntry } from "../node/NodeEntry.ts"
import { timeInWords } from "../node/timeInWords.ts"

export const nodeStates = [
  "offline",
  "joining",
  "routable",
  "unavailable",
  "suspect",
  "draining",
  "cordoned"
] as const

export interface NodeState {
  readonly state: (typeof nodeStates)[number]
  /** The state as a sentence. */
  readonly reason: string
}

/** `now`: monotonic milliseconds; the reason of an offline node says how long it has been so. */
export const nodeState = (entry: NodeEntry, now: number): NodeState => {
  if (entry.link === undefined) {
    const last = entry.lastDisconnect
    return {
      state: "offline",
      reason:
        last === undefined
          ? "has not connected since the edge started"
          : `offline for ${timeInWords(now - last.at)}: ${last.reason}`
    }
  }
  if (entry.suspect) return { state: "suspect", reason: "misses heartbeats" }
  const { status } = entry
  if (status === undefined || status.revision !== entry.revision) {
    return { state: "joining", reason: "has not applied its configuration yet" }
  }
  if (status.draining) return { state: "draining", reason: "finishes its runs and takes no new one" }
  if (entry.cordoned) return { state: "cordoned", reason: "an operator keeps new runs away" }
  const adapters = [...status.adapters.values()]
  if (adapters.some((adapter) => adapter.state === "ready"))
    return { state: "routable", reason: "takes runs" }
  const first = adapters.find((adapter) => adapter.reason !== "")
  return {
    state: "unavailable",
    reason:
      first === undefined ? "no adapter is ready" : `no adapter is ready: ${first.name}: ${first.reason}`
  }
}
