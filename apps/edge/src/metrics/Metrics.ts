// The metrics of this edge as a service, and the two references through which runs and links report to it.
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { PromRegistry } from "@iop/platform-common/observability/PromRegistry"
import { Context, Effect, Layer } from "effect"
import { RunObserver } from "../run/RunObserver.ts"
import { TransportMetrics } from "../transport/TransportMetrics.ts"
import { type EdgeMetrics, makeEdgeMetrics } from "./EdgeMetrics.ts"

export class Metrics extends Context.Service<
  Metrics,
  Pick<EdgeMetrics, "http" | "httpConnectionRefused" | "observe"> & {
    /** The page for Prometheus. */
    readonly page: () => Promise<{ readonly body: string; readonly contentType: string }>
  }
>()("@iop/edge/metrics/Metrics") {
  /** Also provides the observers of runs and of links. */
  static readonly layer = (config: Pick<EdgeConfig, "nodes">, version: string) =>
    Layer.effectContext(
      Effect.gen(function* () {
        const { registry, render } = yield* PromRegistry
        const metrics = makeEdgeMetrics(registry, config, version)
        const page = () => Effect.runPromise(render)
        return Context.make(Metrics, { ...metrics, page }).pipe(
          Context.add(RunObserver, metrics.runs),
          Context.add(TransportMetrics, metrics.transport)
        )
      })
      // The figures of the process keep the names under which every Node process has them.
    ).pipe(Layer.provide(PromRegistry.layer("")))
}
