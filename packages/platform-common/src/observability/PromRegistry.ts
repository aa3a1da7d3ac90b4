// The metrics of a process, in a registry of its own: never prom-client's global one, so that two in one process (tests)
// do not meet. Holds the process's own figures besides whatever is registered on it.

import { Context, Effect, Layer } from "effect"
import { collectDefaultMetrics, Registry } from "prom-client"

export class PromRegistry extends Context.Service<
  PromRegistry,
  {
    /** For `registers: [registry]` of counters, gauges and histograms. */
    readonly registry: Registry
    /** The page for Prometheus. Gauges with `collect` are read now. */
    readonly render: Effect.Effect<{ readonly body: string; readonly contentType: string }>
  }
>()("@iop/platform-common/observability/PromRegistry") {
  /** `prefix`: of the process's own figures, such as `iop_edge_`. */
  static readonly layer = (prefix: string): Layer.Layer<PromRegistry> =>
    Layer.effect(
      PromRegistry,
      Effect.gen(function* () {
        const registry = new Registry()
        collectDefaultMetrics({ register: registry, prefix })
        yield* Effect.addFinalizer(() => Effect.sync(() => registry.clear()))
        const render = Effect.map(
          Effect.promise(() => registry.metrics()),
          (body) => ({ body, contentType: registry.contentType })
        )
        return PromRegistry.of({ registry, render })
      })
    )
}
