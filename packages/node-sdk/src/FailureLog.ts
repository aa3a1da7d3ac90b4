// Says why there is no link, without filling a disk while the edge is away for a night: each kind of failure is
// logged at once, then at most once a minute with the number of those in between.

import { Clock, Effect } from "effect"

/** How long a kind of failure stays silent after it was logged. */
const SILENCE_NANOS = 60_000_000_000n

/** See the file's head. */
export class FailureLog {
  readonly #kinds = new Map<string, { loggedAt: bigint; leftOut: number }>()

  /** Logs a failure, or counts it. `kind` is one of few. */
  log(level: "Warn" | "Error", kind: string, message: string): Effect.Effect<void> {
    return Effect.flatMap(Clock.monotonicTimeNanos, (now) => {
      const known = this.#kinds.get(kind)
      if (known !== undefined && now - known.loggedAt < SILENCE_NANOS) {
        known.leftOut++
        return Effect.void
      }
      this.#kinds.set(kind, { loggedAt: now, leftOut: 0 })
      return Effect.logWithLevel(level)(message, {
        kind,
        ...(known !== undefined && known.leftOut > 0 ? { repeated: known.leftOut } : {})
      })
    })
  }
}
