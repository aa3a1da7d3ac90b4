// The metrics of this edge as a service, and the two references through which runs and links report to it.
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { Context, Effect, Layer } from "effect"
import { Registry } from "prom-client"
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
  /** Also provides the observers of runs and of links. */
  static readonly layer = (config: Pick<EdgeConfig, "nodes">, version: string) =>
    Layer.effectContext(
      Effect.sync(() => {
        const registry = new Registry()
        const metrics = makeEdgeMetrics(registry, config, version)
        const page = async () => ({ text: await registry.metrics(), contentType: registry.contentType })
        return Context.make(Metrics, { http: metrics.http, observe: metrics.observe, page }).pipe(
          Context.add(RunObserver, metrics.runs),
          Context.add(TransportMetrics, metrics.transport)
        )
      })
    )
}
