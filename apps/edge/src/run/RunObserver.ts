// What the runs tell whoever counts and logs them. The run knows neither metrics nor log lines.
import { Context } from "effect"
import type { FailureCode } from "./RunFailure.ts"
import type { RunSnapshot, RunSpec } from "./RunSpec.ts"

/** How one attempt ended. `failed_over`: the run was given to another node. */
export type AttemptOutcome = "completed" | "failed" | "cancelled" | "failed_over" | "node_lost"

export interface RunObserver {
  readonly submitted: (spec: RunSpec) => void
  readonly refused: (spec: RunSpec, code: FailureCode) => void
  /** `node` is the alias. */
  readonly dispatched: (adapter: string, node: string, queueMs: number) => void
  readonly attemptEnded: (adapter: string, node: string, outcome: AttemptOutcome) => void
  /** Once for each accepted run, with its last state. */
  readonly finished: (run: RunSnapshot) => void
  /** A circuit opened, or closed again. */
  readonly circuit: (node: string, adapter: string, open: boolean, reason: string) => void
  /** A reader alone was ended because it fell behind. */
  readonly slowConsumer: (run: RunSnapshot) => void
  /** A node sent an event again that the edge already had. */
  readonly duplicateEvent: (node: string) => void
}

const nothing = () => {}

/** The observer of the run service; without one nothing is told. */
export const RunObserver = Context.Reference<RunObserver>("@iop/edge/run/RunObserver", {
  defaultValue: () => ({
    submitted: nothing,
    refused: nothing,
    dispatched: nothing,
    attemptEnded: nothing,
    finished: nothing,
    circuit: nothing,
    slowConsumer: nothing,
    duplicateEvent: nothing
  })
})
