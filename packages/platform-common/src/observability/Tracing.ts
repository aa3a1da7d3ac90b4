// Traces over OTLP, where a collector is configured. Without one there is no tracer, and its code is not even loaded.

import { Duration, Effect, Layer } from "effect"
import type { TracingConfig } from "../config/EdgeConfig.ts"

/** The last spans are not worth a longer wait at the end of a process. */
const SHUTDOWN_TIMEOUT = Duration.seconds(1)

/**
 * A tracer that sends JSON to `<otlp_url>/v1/traces` in batches; a collector that does not answer costs the spans of a
 * minute and nothing else. `Layer.empty` without `otlp_url`.
 */
export const tracingLayer = (config: TracingConfig, version: string): Layer.Layer<never> => {
  const { otlp_url: base, service_name: serviceName } = config
  if (base === undefined) return Layer.empty
  return Layer.unwrap(
    Effect.promise(async () => {
      const [{ FetchHttpClient }, { OtlpExporter, OtlpSerialization, OtlpTracer }] = await Promise.all([
        import("effect/http"),
        import("effect/observability")
      ])
      return OtlpTracer.layer({
        url: tracesUrl(base),
        resource: { serviceName, serviceVersion: version },
        shutdownTimeout: SHUTDOWN_TIMEOUT
      }).pipe(
        Layer.provide(OtlpExporter.layerFlusher),
        Layer.provide(OtlpSerialization.layerJson),
        Layer.provide(FetchHttpClient.layer)
      )
    })
  )
}

/** The collector's own path for traces, below whatever path the address has. */
export const tracesUrl = (base: string): string => {
  const url = new URL(base)
  if (!url.pathname.endsWith("/v1/traces")) url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/traces`
  return url.href
}
