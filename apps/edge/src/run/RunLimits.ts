// The limits of runs, in the units that plain code counts in; `limitsFromConfig` makes them of a configuration.
import type { RelayLimits } from "./Relay.ts"

/** The limits of a run; milliseconds on the monotonic clock. */
export interface RunLimits {
  readonly queueMs: number
  readonly firstEventMs: number
  readonly idleMs: number
  /** Undefined: a run may take as long as it wants. */
  readonly totalMs: number | undefined
  readonly cancelMs: number
  readonly resumeGraceMs: number
  readonly maxAttempts: number
  readonly runWindowBytes: number
  readonly relay: RelayLimits
}

/** The limits of all runs together. */
export interface RunServiceLimits extends RunLimits {
  /** Waiting runs per adapter and target. */
  readonly queueLimit: number
  /** What the heap of the process may grow to; a part of it is for events that wait. */
  readonly heapBytes: number
  /** Ended runs to remember. */
  readonly history: number
  /** A failure within this time of its dispatch, before a delta, counts for the circuit; milliseconds. */
  readonly fastFailureMs: number
}
