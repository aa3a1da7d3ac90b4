// What a registering node and the edge tell each other about runs that the node still holds.
import type { AttemptSink } from "../node/NodeLink.ts"

/** A run that a registering node says it still holds. */
export interface HeldRunClaim {
  readonly runId: string
  readonly attempt: number
  readonly firstUnackedSeq: number
  readonly lastSeq: number
}

/** What the node is told about a held run. `attach` is called with the handle that the new link gave to the run. */
export type HeldRunAnswer =
  | {
      readonly resume: true
      readonly afterSeq: number
      readonly sink: AttemptSink
      readonly attach: (handle: number) => void
    }
  | { readonly resume: false; readonly reason: string }
