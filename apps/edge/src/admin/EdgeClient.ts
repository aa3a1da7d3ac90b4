// What commands and the console may do with an edge, whether it runs in the same process (`localClient`) or elsewhere
// (`cli/client/httpClient`). Both speak in the views of the admin API.
import { Data, type Effect, type Stream } from "effect"
import type { NodeView } from "./NodeView.ts"
import type { RunEventView } from "./RunEventView.ts"
import type { RunNeed, RunSubmission } from "./RunSubmission.ts"
import type { ExplanationView, RunView } from "./RunView.ts"

/** Why the edge did not do what it was asked. */
export class EdgeProblem extends Data.TaggedError("EdgeProblem")<{
  /** `unreachable`, `unauthorized`, `not_found`, `invalid_request`, or a failure code of a run. */
  readonly code: string
  /** A sentence for a person. */
  readonly message: string
  readonly retryAfterMs?: number
}> {}

export interface SubmittedRun {
  readonly id: string
  /** The run's events. Leaving the stream before its end cancels the run, unless it was asked to be detached. */
  readonly events: Stream.Stream<RunEventView, EdgeProblem>
}

export interface EdgeClient {
  readonly nodes: Effect.Effect<ReadonlyArray<NodeView>, EdgeProblem>
  /** By id or alias. */
  readonly node: (name: string) => Effect.Effect<NodeView, EdgeProblem>
  /** Keeps new runs away from the node, or lets them come again. */
  readonly setCordoned: (name: string, cordoned: boolean) => Effect.Effect<NodeView, EdgeProblem>
  /** Cordons the node and asks it to finish its runs. */
  readonly drainNode: (name: string) => Effect.Effect<NodeView, EdgeProblem>
  /** Newest first. */
  readonly runs: (filter: {
    readonly active?: boolean
    readonly limit?: number
  }) => Effect.Effect<ReadonlyArray<RunView>, EdgeProblem>
  readonly run: (id: string) => Effect.Effect<RunView, EdgeProblem>
  readonly submit: (submission: RunSubmission) => Effect.Effect<SubmittedRun, EdgeProblem>
  /** Submits a run that goes on by itself. */
  readonly submitDetached: (submission: RunSubmission) => Effect.Effect<RunView, EdgeProblem>
  /** The run's events after seq `after`, to its end. Leaving the stream leaves the run as it is. */
  readonly events: (id: string, after: number) => Stream.Stream<RunEventView, EdgeProblem>
  /** `reason`: why, in words for the run's record; who asked stands there in any case. */
  readonly cancel: (id: string, reason?: string) => Effect.Effect<RunView, EdgeProblem>
  readonly explain: (need: RunNeed) => Effect.Effect<ExplanationView, EdgeProblem>
}
