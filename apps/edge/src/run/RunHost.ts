import type { Attempt } from "./Attempt.ts"
import type { Run } from "./Run.ts"
import type { RunLimits } from "./RunLimits.ts"
import type { AttemptOutcome } from "./RunObserver.ts"

/** What a run needs from the service that owns it. */
export interface RunHost {
  readonly limits: RunLimits
  readonly now: () => number
  readonly after: (ms: number, callback: () => void) => () => void
  /**
   * Whether another node than those of `run.excluded` and `node` could take it, now or soon. `connected`: nodes without
   * a link don't count, although they may come back.
   */
  readonly hasAlternative: (run: Run, node: string, connected: boolean) => boolean
  /**
   * Looks again why no node takes the waiting run: what was known when it began to wait may be past. Whether a node
   * might still take it by waiting.
   */
  readonly reconsider: (run: Run) => boolean
  readonly enqueue: (run: Run, again: boolean) => void
  readonly dequeue: (run: Run) => void
  readonly queuedAhead: (run: Run) => number
  /** `fault`: what the node said went wrong, when the adapter is to blame; else empty. */
  readonly attemptEnded: (run: Run, attempt: Attempt, outcome: AttemptOutcome, fault: string) => void
  /** The run is over but its node has not answered (true); it has, or its link is gone (false). */
  readonly orphaned: (run: Run, is: boolean) => void
  /** The first delta of the attempt came. */
  readonly delivering: (attempt: Attempt) => void
  readonly finished: (run: Run) => void
  readonly slowConsumer: (run: Run) => void
  readonly acknowledgeLater: (attempt: Attempt) => void
  readonly duplicate: (run: Run, attempt: Attempt) => void
}
