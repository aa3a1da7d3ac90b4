// Why a run is not accepted, with what there is instead. The same words for a submission and for `explain`.
import type { NodeRegistry } from "../node/NodeRegistry.ts"
import { couldServe, isPassing, type Selection, type SelectionNeed } from "../node/selection.ts"
import type { RunFailure } from "./RunFailure.ts"
import type { NodeVerdict } from "./RunSpec.ts"

/** What a refused caller is told to wait: about one run's time, in milliseconds. */
const RETRY_AFTER_MS = 5000

/** How many names an error lists. */
const MAX_NAMES = 20

export const drainingFailure: RunFailure = {
  code: "draining",
  message: "the edge is stopping and takes no new run",
  retryable: true,
  retryAfterMs: RETRY_AFTER_MS
}

/** The edge has as many runs as it can hold the events of. */
export const tooManyRuns = (runs: number): RunFailure => ({
  code: "queue_full",
  message: `${runs} runs go on, as many as the memory of this edge allows`,
  retryable: true,
  retryAfterMs: RETRY_AFTER_MS
})

/** The inputs of the runs that go on take all the room there is for them. */
export const tooMuchInput = (bytes: number): RunFailure => ({
  code: "queue_full",
  message: `the inputs of the runs that go on take ${Math.round(bytes / 1024 / 1024)} MiB, as much as the memory of this edge allows`,
  retryable: true,
  retryAfterMs: RETRY_AFTER_MS
})

export interface RefusalContext {
  readonly registry: NodeRegistry["Service"]
  readonly queue: {
    readonly limit: number
    readonly isFull: (adapter: string, target: string) => boolean
  }
  readonly verdicts: () => ReadonlyArray<NodeVerdict>
  /** Whether other runs wait for the same target and go first. */
  readonly waits: boolean
}

/** Why the run can't be accepted, or undefined. */
export const refusal = (
  need: SelectionNeed,
  selection: Selection,
  { registry, queue, verdicts, waits }: RefusalContext
): RunFailure | undefined => {
  const what = `${need.adapter}/${need.target}`
  if (selection.chosen === undefined) {
    if (!registry.all().some((entry) => couldServe(entry, need))) {
      const elsewhere = registry.all().filter((entry) => couldServe(entry, { ...need, labels: undefined }))
      const message =
        elsewhere.length > 0
          ? `no node that could serve ${what} has the labels ${labelText(need.labels)}; there are: ${list(
              elsewhere.map(({ record }) => `${record.alias} (${labelText(record.labels) || "no labels"})`)
            )}`
          : `no node could serve ${what}: ${offered(registry, need.adapter)}`
      return { code: "target_not_found", message, retryable: false }
    }
    if (!selection.reasons.some(isPassing)) {
      const why = verdicts()
        .filter((verdict) => verdict.reason !== "no_adapter")
        .slice(0, MAX_NAMES)
        .map((verdict) => `${verdict.alias} ${verdict.message}`)
      return {
        code: "no_node_available",
        message: `no node can take ${what} now: ${why.join("; ")}`,
        retryable: true,
        retryAfterMs: RETRY_AFTER_MS
      }
    }
  } else if (!waits) return undefined
  if (!queue.isFull(need.adapter, need.target)) return undefined
  return {
    code: "queue_full",
    message: `${queue.limit} runs already wait for ${what}`,
    retryable: true,
    retryAfterMs: RETRY_AFTER_MS
  }
}

const labelText = (labels: Readonly<Record<string, string>> | undefined): string =>
  Object.entries(labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(", ")

const list = (names: Iterable<string>): string => {
  const all = [...new Set(names)].sort()
  if (all.length === 0) return "none"
  const more = all.length > MAX_NAMES ? ` and ${all.length - MAX_NAMES} more` : ""
  return all.slice(0, MAX_NAMES).join(", ") + more
}

const offered = (registry: NodeRegistry["Service"], adapter: string): string => {
  const entries = registry.all().filter((entry) => entry.adapter(adapter) !== undefined)
  if (entries.length === 0) {
    const adapters = registry.all().flatMap((entry) => entry.record.adapters.map(({ name }) => name))
    return `no node has an adapter of that name; there are: ${list(adapters)}`
  }
  const targets = entries.flatMap((entry) => [
    ...(entry.adapter(adapter)?.targets ?? []),
    ...(entry.status?.adapters.get(adapter)?.targets.map((target) => target.name) ?? [])
  ])
  return `targets of ${adapter}: ${list(targets)}`
}
