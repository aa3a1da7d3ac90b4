// The runs of this edge: accepting them, giving them to nodes, and telling about them. Everything below the Effect
// interface is plain code that runs to its end in one turn, so that a claim, a dispatch and a release never interleave.
import { Context, Effect, FiberSet, Layer, type Stream } from "effect"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { Timers } from "../node/Timers.ts"
import { makeRunService } from "./makeRunService.ts"
import type { RelayedEvent } from "./RunEvent.ts"
import type { RunRefused } from "./RunFailure.ts"
import type { RunServiceLimits } from "./RunLimits.ts"
import { withRunLog } from "./RunLog.ts"
import { RunObserver } from "./RunObserver.ts"
import type { RunOperations } from "./RunOperations.ts"
import { type RunReader, readerEvents } from "./RunReader.ts"
import { RunTracing } from "./RunTracing.ts"

export class RunService extends Context.Service<
  RunService,
  RunOperations & {
    /**
     * The events of a reader, in the pieces they were relayed in. The end of the stream, however it comes, leaves the
     * run as `close` does. Fails when the reader alone was ended.
     */
    readonly events: (reader: RunReader) => Stream.Stream<RelayedEvent, RunRefused>
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
