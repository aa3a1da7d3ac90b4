// What a clock that ran out says to a person: its name in words, the measured time, the limit.
import type { RunLimits } from "./RunLimits.ts"
import type { NodeVerdict } from "./RunSpec.ts"
import type { RunClock } from "./runMachine.ts"

export interface ClockContext {
  readonly limits: RunLimits
  /** The run's own total time, where it has one. */
  readonly totalMs: number | undefined
  /** Why the link was lost. */
  readonly linkReason: string
  readonly selection: () => ReadonlyArray<NodeVerdict>
  /** Whether a node might have taken the run if it had waited on. */
  readonly passing: boolean
}

/** @param measuredMs what the clock showed when it rang, in milliseconds */
export const clockMessage = (clock: RunClock, measuredMs: number, context: ClockContext): string => {
  const { limits } = context
  const measured = `${(measuredMs / 1000).toFixed(1)} s`
  const limit = (ms: number) => `(limit ${ms / 1000} s)`
  switch (clock) {
    case "queue":
      return `${context.passing ? "no slot was free" : "no node could take it"} for ${measured} ${limit(limits.queueMs)}; ${context
        .selection()
        .filter((verdict) => verdict.reason !== "no_adapter" && verdict.reason !== "no_target")
        .map((verdict) => `${verdict.alias}: ${verdict.message}`)
        .join("; ")}`
    case "first_event":
      return `the node sent no event for ${measured} ${limit(limits.firstEventMs)}`
    case "idle":
      return `the node sent nothing for ${measured} between two events ${limit(limits.idleMs)}`
    case "total":
      return `the run took ${measured} ${limit(context.totalMs ?? 0)}`
    case "grace":
      return `${context.linkReason}; it did not come back within ${measured} ${limit(limits.resumeGraceMs)}`
    case "cancel":
      return `the node did not answer the cancel for ${measured} ${limit(limits.cancelMs)}`
  }
}
