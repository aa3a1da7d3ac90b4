// The metrics of this edge as a service, and the two references through which runs and links report to it.
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { Context, Effect, FiberSet, Layer } from "effect"
import { Registry } from "prom-client"
import { withRunLog } from "../run/RunLog.ts"
import { RunObserver } from "../run/RunObserver.ts"
import { TransportMetrics } from "../transport/TransportMetrics.ts"
import { type EdgeMetrics, makeEdgeMetrics } from "./EdgeMetrics.ts"

export class Metrics extends Context.Service<
  Metrics,
  Pick<EdgeMetrics, "http" | "observe"> & {
    /** The page for Prometheus. */
    readonly page: () => Promise<{ readonly text: string; readonly contentType: string }>
  }
>()("@iop/edge/metrics/Metrics") {
  /** Also provides the observers of runs (with their log lines) and of links. */
  static readonly layer = (config: Pick<EdgeConfig, "nodes">, version: string) =>
    Layer.effectContext(
      Effect.gen(function* () {
        const registry = new Registry()
        const metrics = makeEdgeMetrics(registry, config, version)
        const fork = yield* FiberSet.makeRuntime<never>()
        const page = async () => ({ text: await registry.metrics(), contentType: registry.contentType })
        return Context.make(Metrics, { http: metrics.http, observe: metrics.observe, page }).pipe(
          Context.add(RunObserver, withRunLog(metrics.runs, fork)),
          Context.add(TransportMetrics, metrics.transport)
        )
      })
    )
}
