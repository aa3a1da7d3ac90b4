// What can be done with the runs of an edge. The plain half of the run service implements it.
import type { Effect } from "effect"
import type { NodeEntry } from "../node/NodeEntry.ts"
import type { NodeLink } from "../node/NodeLink.ts"
import type { Explanation } from "./Explanation.ts"
import type { HeldRunAnswer, HeldRunClaim } from "./HeldRun.ts"
import type { RunNotFound, RunRefused, TooLate } from "./RunFailure.ts"
import type { RunReader } from "./RunReader.ts"
import type { RunSnapshot, RunSpec } from "./RunSpec.ts"

export interface RunOperations {
  /** Accepts a run and returns it with its owner's reader, or says why not. Never waits. */
  readonly submit: (
    spec: RunSpec
  ) => Effect.Effect<{ readonly run: RunSnapshot; readonly reader: RunReader }, RunRefused>
  readonly get: (runId: string) => Effect.Effect<RunSnapshot, RunNotFound>
  /** Newest first. `active`: only those that go on, or only those that ended. */
  readonly list: (filter?: {
    readonly active?: boolean
    readonly limit?: number
  }) => ReadonlyArray<RunSnapshot>
  /** An observer's reader: it never holds up the run and does not own it. `after`: the last seq it has. */
  readonly read: (runId: string, after?: number) => Effect.Effect<RunReader, RunNotFound | TooLate>
  /** Idempotent: answers the state after it. */
  readonly cancel: (runId: string, reason: string) => Effect.Effect<RunSnapshot, RunNotFound>
  /** What a submission would do now, without doing it. */
  readonly explain: (need: Pick<RunSpec, "adapter" | "target" | "labels" | "session">) => Explanation
  /** No new run; what is queued fails with draining; running ones go on. Resolves when none is in flight. */
  readonly drain: Effect.Effect<void>
  /** Ends everything that still goes on with draining. */
  readonly stop: Effect.Effect<void>
  readonly draining: () => boolean
  /** For the transport: a node's held runs at its registration, in the order of `held`. */
  readonly resume: (
    entry: NodeEntry,
    link: NodeLink,
    held: ReadonlyArray<HeldRunClaim>
  ) => ReadonlyArray<HeldRunAnswer>
  /** For the transport: the link is over. `mayResume`: the same process may come back and go on. */
  readonly linkLost: (link: NodeLink, reason: string, mayResume: boolean) => void
  readonly counts: () => { readonly queued: number; readonly inFlight: number }
}
