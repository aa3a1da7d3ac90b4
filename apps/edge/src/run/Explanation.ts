// What a submission would do now.
import type { RunFailure } from "./RunFailure.ts"
import type { NodeVerdict } from "./RunSpec.ts"

export interface Explanation {
  readonly adapter: string
  readonly target: string
  /** Alias of the node that would get the run now. */
  readonly chosen?: string
  /** What would happen instead, when no node would get it now: it waits, or this failure. */
  readonly otherwise?:
    | { readonly waits: true; readonly ahead: number }
    | { readonly waits: false; readonly failure: RunFailure }
  readonly nodes: ReadonlyArray<NodeVerdict>
}
