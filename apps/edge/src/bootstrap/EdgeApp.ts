// The one place where the edge is put together: configuration → store, configurations, registry, runs, links, HTTP,
// metrics. All three listeners are up when it is built, or none.
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { tracingLayer } from "@iop/platform-common/observability/Tracing"
import type { ListenError as FrameListenError } from "@iop/proto-socket/FrameListener"
import { Context, Duration, Effect, Layer } from "effect"
import type { EdgeClient } from "../admin/EdgeClient.ts"
import { makeLocalClient } from "../admin/localClient.ts"
import { ListenError, listenReason, wantsAnotherPort } from "../http/ListenError.ts"
import { Metrics } from "../metrics/Metrics.ts"
import { NodeConfigs } from "../node/NodeConfigs.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { NodeStore } from "../node/NodeStore.ts"
import { Timers } from "../node/Timers.ts"
import { circuitLimits, runLimits } from "../run/limitsFromConfig.ts"
import { RunService } from "../run/RunService.ts"
import { makeRunTracing, RunTracing } from "../run/RunTracing.ts"
import { NodeTransport } from "../transport/NodeTransport.ts"
import { connectionLimits } from "./descriptorLimit.ts"
import { type BoundAddress, EdgeListeners } from "./EdgeListeners.ts"
import { crashProcess, supervisedTimers } from "./supervisedTimers.ts"

export class EdgeApp extends Context.Service<
  EdgeApp,
  {
    /** Where it really listens. */
    readonly addresses: {
      readonly nodes: BoundAddress
      readonly http: BoundAddress
      readonly ops: BoundAddress
    }
    /** This edge for a caller in the same process. */
    readonly client: (caller: string) => EdgeClient
    readonly registry: NodeRegistry["Service"]
    /** No new run, what runs may finish within `edge.drain_timeout`, the rest ends with draining. */
    readonly drain: Effect.Effect<void>
  }
>()("@iop/edge/bootstrap/EdgeApp") {
  /** Runs until the layer is released; then says Goodbye to the nodes and closes the listeners. */
  static readonly layer = (config: EdgeConfig, version: string) => {
    const limits = connectionLimits()
    const nodes = NodeRegistry.layer(circuitLimits(config)).pipe(
      Layer.provideMerge(NodeConfigs.layer),
      Layer.provideMerge(NodeStore.layer(config)),
      Layer.provideMerge(supervisedTimers(crashProcess))
    )
    const tracing =
      config.tracing.otlp_url === undefined
        ? Layer.empty
        : Layer.effect(RunTracing, makeRunTracing).pipe(Layer.provide(tracingLayer(config.tracing, version)))
    const runs = RunService.layer(runLimits(config)).pipe(Layer.provideMerge(nodes), Layer.provide(tracing))
    const links = NodeTransport.layer(
      config,
      limits.nodes === undefined ? {} : { maxConnections: limits.nodes }
    ).pipe(Layer.catch((error) => Layer.effect(NodeTransport, nodesListenError(error))))
    return Layer.effect(EdgeApp, assemble(config)).pipe(
      Layer.provide(links),
      Layer.provide(EdgeListeners.layer(config, limits)),
      Layer.provide(runs),
      Layer.provide(Metrics.layer(config, version))
    )
  }
}

/** In the words of the other listeners, where the system said why; what is wrong with a certificate is told as it is. */
const nodesListenError = (error: FrameListenError): ListenError => {
  const { cause, host, message, port, reason } = error
  const system = cause instanceof Error && reason !== "tls_file" && reason !== "bad_port" ? cause : undefined
  return new ListenError({
    listener: "nodes",
    address: `${host}:${port}`,
    reason: system === undefined ? message.replace(/^cannot listen on \S+: /, "") : listenReason(system),
    anotherPort: system !== undefined && wantsAnotherPort(system)
  })
}

const assemble = Effect.fnUntraced(function* (config: EdgeConfig) {
  const runs = yield* RunService
  const registry = yield* NodeRegistry
  const timers = yield* Timers
  const transport = yield* NodeTransport
  const listeners = yield* EdgeListeners
  const metrics = yield* Metrics
  metrics.observe({ registry, runs, now: timers.now })
  const timeout = config.edge.drain_timeout
  return EdgeApp.of({
    addresses: { nodes: transport.address, http: listeners.http, ops: listeners.ops },
    client: (caller) => makeLocalClient({ runs, registry, timers }, caller),
    registry,
    drain: Effect.gen(function* () {
      yield* transport.drain(Duration.toMillis(timeout))
      yield* Effect.timeoutOption(runs.drain, timeout)
      yield* runs.stop
    })
  })
})
