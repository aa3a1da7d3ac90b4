// contract; the implementation replaces this file
import type { Effect, Stream } from "effect"
import { Context } from "effect"
import type { NodeEntry } from "../node/NodeEntry.ts"
import type { AttemptSink, NodeLink } from "../node/NodeLink.ts"
import type { RelayedEvent } from "./RunEvent.ts"
import type { RunNotFound, RunRefused, TooLate } from "./RunFailure.ts"
import type { NodeVerdict, RunSnapshot, RunSpec } from "./RunSpec.ts"

/** A run that a registering node says it still holds. */
export interface HeldRunClaim {
  readonly runId: string
  readonly attempt: number
  readonly firstUnackedSeq: number
  readonly lastSeq: number
}

/** What the node is told about a held run. `attach` is called with the handle that the new link gave to the run. */
export type HeldRunAnswer =
  | { readonly resume: true; readonly afterSeq: number; readonly sink: AttemptSink; readonly attach: (handle: number) => void }
  | { readonly resume: false; readonly reason: string }

/** A reader of one run. Plain, for the paths that write many events; `events` is the same as a Stream. */
export interface RunReader {
  /** Takes what is there, at most about `maxBytes` of it; empty when nothing is. */
  readonly take: (maxBytes?: number) => ReadonlyArray<RelayedEvent>
  /** Calls back once when `take` has something, or when the reader is over. */
  readonly onReady: (callback: () => void) => void
  /** No more events will come: the terminal one was taken, or the reader itself was ended (see `failure`). */
  readonly done: () => boolean
  /** Set when this reader alone was ended: it fell behind (slow_consumer). */
  readonly failure: () => RunRefused["failure"] | undefined
  /** Leaves. A run that is not detached is cancelled when its owner leaves. */
  readonly close: () => void
}

export interface Explanation {
  readonly adapter: string
  readonly target: string
  /** Alias of the node that would get the run now. */
  readonly chosen?: string
  /** What would happen instead, when no node would get it now: it waits, or this failure. */
  readonly otherwise?: { readonly waits: true; readonly ahead: number } | { readonly waits: false; readonly code: string; readonly message: string }
  readonly nodes: ReadonlyArray<NodeVerdict>
}

export class RunService extends Context.Service<
  RunService,
  {
    /** Accepts a run and returns it with its owner's reader, or says why not. Never waits. */
    readonly submit: (spec: RunSpec) => Effect.Effect<{ readonly run: RunSnapshot; readonly reader: RunReader }, RunRefused>
    readonly get: (runId: string) => Effect.Effect<RunSnapshot, RunNotFound>
    /** Newest first. */
    readonly list: (filter?: { readonly active?: boolean; readonly limit?: number }) => ReadonlyArray<RunSnapshot>
    /** An observer's reader: it never holds up the run and does not own it. `after`: the last seq it has. */
    readonly read: (runId: string, after?: number) => Effect.Effect<RunReader, RunNotFound | TooLate>
    /** The events of a reader; the stream's end leaves the run as `close` does. Fails when the reader alone was ended. */
    readonly events: (reader: RunReader) => Stream.Stream<RelayedEvent, RunRefused>
    /** Idempotent: answers the state after it. */
    readonly cancel: (runId: string, reason: string) => Effect.Effect<RunSnapshot, RunNotFound>
    readonly explain: (need: Pick<RunSpec, "adapter" | "target" | "labels" | "session">) => Explanation
    /** No new run; what is queued fails with draining; running ones go on. Resolves when none is in flight. */
    readonly drain: Effect.Effect<void>
    /** Ends everything that still goes on with draining. */
    readonly stop: Effect.Effect<void>
    readonly draining: () => boolean
    /** For the transport: a node's held runs at registration, before the link is attached to the registry. */
    readonly resume: (entry: NodeEntry, link: NodeLink, held: ReadonlyArray<HeldRunClaim>) => ReadonlyArray<HeldRunAnswer>
    /** For the transport: the link is over. `mayResume`: the same process may come back and go on. */
    readonly linkLost: (link: NodeLink, reason: string, mayResume: boolean) => void
    readonly counts: () => { readonly queued: number; readonly inFlight: number }
  }
>()("@iop/edge/run/RunService") {}
