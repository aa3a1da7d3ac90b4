// The runs of this edge: accepting them, giving them to nodes, and telling about them. Everything below the Effect
// interface is plain code that runs to its end in one turn, so that a claim, a dispatch and a release never interleave.
import { Array as Arr, Cause, Context, Effect, FiberSet, Layer, Stream } from "effect"
import type { NodeEntry } from "../node/NodeEntry.ts"
import type { AttemptSink, NodeLink } from "../node/NodeLink.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { Timers } from "../node/Timers.ts"
import { makeRunService } from "./makeRunService.ts"
import type { RelayedEvent } from "./RunEvent.ts"
import { type RunFailure, type RunNotFound, RunRefused, type TooLate } from "./RunFailure.ts"
import type { RunServiceLimits } from "./RunLimits.ts"
import { withRunLog } from "./RunLog.ts"
import { RunObserver } from "./RunObserver.ts"
import type { NodeVerdict, RunSnapshot, RunSpec } from "./RunSpec.ts"
import { RunTracing } from "./RunTracing.ts"

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

/** A reader of one run. Plain, for the paths that write many events; `events` is the same as a Stream. */
export interface RunReader {
  /** Takes what is there, at most about `maxBytes` of it (64 KiB by default); empty when nothing is. */
  readonly take: (maxBytes?: number) => ReadonlyArray<RelayedEvent>
  /** Calls back once when `take` has something, or when the reader is over; at once if that is so now. */
  readonly onReady: (callback: () => void) => void
  /** No more events will come: the terminal one was taken, or the reader itself was ended (see `failure`). */
  readonly done: () => boolean
  /** Set when this reader alone was ended: it fell behind (slow_consumer). */
  readonly failure: () => RunFailure | undefined
  /** Leaves. A run that is not detached is cancelled when its owner leaves. */
  readonly close: () => void
}

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

export class RunService extends Context.Service<
  RunService,
  {
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
    /**
     * The events of a reader, in the pieces they were relayed in. The end of the stream, however it comes, leaves the
     * run as `close` does. Fails when the reader alone was ended.
     */
    readonly events: (reader: RunReader) => Stream.Stream<RelayedEvent, RunRefused>
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
>()("@iop/edge/run/RunService") {
  /** Limits in milliseconds and bytes; the registry and the clock come from the context. */
  static readonly layer = (limits: RunServiceLimits) =>
    Layer.effect(
      RunService,
      Effect.gen(function* () {
        const registry = yield* NodeRegistry
        const timers = yield* Timers
        const observer = yield* RunObserver
        const fork = yield* FiberSet.makeRuntime<never>()
        const service = makeRunService(
          registry,
          timers,
          withRunLog(observer, fork),
          yield* RunTracing,
          limits
        )
        yield* Effect.addFinalizer(() => Effect.sync(service.close))
        return RunService.of({ ...service, events: readerEvents })
      })
    )
}

/** The events of a reader as a stream: one pull takes all that is there. */
const readerEvents = (reader: RunReader): Stream.Stream<RelayedEvent, RunRefused> =>
  Stream.fromPull(Effect.succeed(pullReader(reader))).pipe(Stream.ensuring(Effect.sync(reader.close)))

const pullReader = (reader: RunReader) =>
  Effect.gen(function* () {
    while (true) {
      const events = reader.take()
      const failure = reader.failure()
      if (failure !== undefined) return yield* new RunRefused({ failure })
      if (Arr.isReadonlyArrayNonEmpty(events)) return events
      if (reader.done()) return yield* Cause.done()
      yield* Effect.callback<void>((resume) => reader.onReady(() => resume(Effect.void)))
    }
  })
