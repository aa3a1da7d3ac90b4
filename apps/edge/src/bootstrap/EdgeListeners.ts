// The HTTP listeners of the edge with the surfaces that each of them has.

import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { makeRateLimitedLog } from "@iop/platform-common/observability/RateLimitedLog"
import { Context, Duration, Effect, FiberSet, Layer } from "effect"
import { makeAdminSurface } from "../admin/AdminSurface.ts"
import { makeApiKeys } from "../http/ApiKeys.ts"
import { listenHttp } from "../http/HttpListener.ts"
import { Metrics } from "../metrics/Metrics.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { Timers } from "../node/Timers.ts"
import { RunService } from "../run/RunService.ts"
import type { ConnectionLimits } from "./descriptorLimit.ts"
import { makeOpsSurface } from "./OpsSurface.ts"

/** Where a listener really listens. */
export interface BoundAddress {
  readonly host: string
  readonly port: number
}

export class EdgeListeners extends Context.Service<
  EdgeListeners,
  { readonly http: BoundAddress; readonly ops: BoundAddress }
>()("@iop/edge/bootstrap/EdgeListeners") {
  static readonly layer = (config: EdgeConfig, limits: ConnectionLimits) =>
    Layer.effect(EdgeListeners, open(config, limits))
}

const open = Effect.fnUntraced(function* (config: EdgeConfig, limits: ConnectionLimits) {
  const runs = yield* RunService
  const registry = yield* NodeRegistry
  const timers = yield* Timers
  const metrics = yield* Metrics
  const timeouts = {
    headersTimeoutMs: Duration.toMillis(config.http.headers_timeout),
    bodyTimeoutMs: Duration.toMillis(config.http.body_timeout),
    maxBody: config.http.max_body
  }
  const admin = yield* makeAdminSurface(
    { runs, registry, timers },
    {
      maxBody: config.http.max_body,
      sseCommentMs: Duration.toMillis(config.http.sse_comment)
    }
  )
  const ops = makeOpsSurface({ draining: runs.draining, metrics: metrics.page })
  const shared = {
    ...timeouts,
    writeDeadlineMs: Duration.toMillis(config.runs.consumer_timeout),
    hosts: config.listen.http.hosts,
    keys: makeApiKeys(config),
    observe: metrics.http
  }
  const refusals = yield* makeRateLimitedLog({ lines: 1, window: Duration.seconds(5) })
  const fork = yield* FiberSet.makeRuntime<never>()
  const onRefused = (listener: "http" | "ops", limit: number | undefined) => (address: string) => {
    metrics.httpConnectionRefused(listener)
    fork(
      refusals.log(listener, "Warn", "too many connections, a new one is closed", {
        listener,
        address,
        limit
      })
    )
  }
  const http = yield* listenHttp({
    ...shared,
    name: "http",
    host: config.listen.http.host,
    port: config.listen.http.port,
    surfaces: [admin],
    onRefused: onRefused("http", limits.http),
    ...(limits.http === undefined ? {} : { maxConnections: limits.http })
  })
  const watch = yield* listenHttp({
    ...shared,
    name: "ops",
    host: config.listen.ops.host,
    port: config.listen.ops.port,
    surfaces: [ops],
    onRefused: onRefused("ops", limits.ops),
    ...(limits.ops === undefined ? {} : { maxConnections: limits.ops })
  })
  return {
    http: { host: http.address.address, port: http.address.port },
    ops: { host: watch.address.address, port: watch.address.port }
  }
})
