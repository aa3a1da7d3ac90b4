// The edge's side of the links: listens for nodes, owns every connection until it is closed, keeps the pulse, and takes
// leave of all nodes when the edge stops.
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { type FrameSocket, type ListenError, listenFrames } from "@iop/proto-socket/FrameListener"
import { formatPeer } from "@iop/proto-socket/peerAddress"
import { Context, Effect, Layer } from "effect"
import { NodeConfigs } from "../node/NodeConfigs.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { NodeStore } from "../node/NodeStore.ts"
import { Timers } from "../node/Timers.ts"
import { RunService } from "../run/RunService.ts"
import { Handles } from "./Handles.ts"
import { Heartbeats } from "./Heartbeats.ts"
import type { LinkHost } from "./LinkHost.ts"
import { linkSettings } from "./LinkSettings.ts"
import { NodeSession } from "./NodeSession.ts"
import { Takeovers } from "./Takeovers.ts"
import { TokenThrottle } from "./TokenThrottle.ts"
import { makeTransportLog } from "./TransportLog.ts"
import { TransportMetrics } from "./TransportMetrics.ts"
import { UnregisteredLimit } from "./UnregisteredLimit.ts"

export interface NodeTransportOptions {
  /** Connections of nodes at once; more are dropped when they are accepted. Default: no limit. */
  readonly maxConnections?: number
}

/** How often the traffic of open connections is told to the metrics. */
const TRAFFIC_MS = 1000

export class NodeTransport extends Context.Service<
  NodeTransport,
  {
    /** Where nodes can dial in. */
    readonly address: { readonly host: string; readonly port: number }
    /** Asks every node to finish its runs within the time (ms) and turns new registrations away. Twice is once. */
    readonly drain: (timeoutMs: number) => Effect.Effect<void>
    /** Connections now. `unregistered` are those that have not shown a good token. */
    readonly counts: () => { readonly links: number; readonly unregistered: number }
  }
>()("@iop/edge/transport/NodeTransport") {
  /** Listens as configured until the layer is released. */
  static readonly layer = (
    config: EdgeConfig,
    options: NodeTransportOptions = {}
  ): Layer.Layer<NodeTransport, ListenError, NodeStore | NodeConfigs | NodeRegistry | RunService | Timers> =>
    Layer.effect(NodeTransport, open(config, options))
}

const open = Effect.fnUntraced(function* (config: EdgeConfig, options: NodeTransportOptions) {
  const host = yield* makeHost(config)
  const { settings, metrics, log } = host
  const { nodes: listen } = config.listen
  let stopping = false
  let allClosed = () => {}
  const closed = () => {
    if (stopping && host.sessions.size === 0) allClosed()
  }
  const accept = (socket: FrameSocket) => {
    if (stopping) {
      metrics.connectionRefused("stopping")
      socket.destroy()
      return
    }
    new NodeSession(host, socket, closed)
  }
  const listener = yield* listenFrames({
    host: listen.host,
    port: listen.port,
    ...(listen.tls === undefined ? {} : { tls: tlsOptions(listen.tls) }),
    tlsHandshakeTimeoutMs: settings.registerTimeoutMs,
    ...(options.maxConnections === undefined ? {} : { maxConnections: options.maxConnections }),
    onConnection: accept,
    onRefused: (peer) => {
      metrics.connectionRefused("connection_limit")
      log.noise("refused", "warn", "too many connections of nodes, a new one is dropped", {
        address: peer.remoteAddress,
        limit: options.maxConnections ?? 0
      })
    },
    onTlsError: (message, peer) => {
      metrics.connectionRefused("tls")
      log.noise("tls", "warn", "tls handshake with a node failed", {
        peer: formatPeer(peer.remoteAddress, peer.remotePort),
        reason: message
      })
    },
    onAcceptError: (message) => log.noise("accept", "error", message, {})
  })
  yield* keepPulse(host)
  yield* Effect.addFinalizer(() =>
    Effect.callback<void>((resume) => {
      stopping = true
      // Who waits for the place of a link that ends now must not get it.
      host.draining = true
      allClosed = () => resume(Effect.void)
      // Each of them is destroyed after its own short bound, so that this ends.
      for (const session of [...host.sessions]) session.stop()
      closed()
    })
  )
  log.write("info", "listening for nodes", {
    address: formatPeer(listener.address.host, listener.address.port),
    tls: listen.tls !== undefined
  })
  return NodeTransport.of({
    address: listener.address,
    drain: (timeoutMs) =>
      Effect.sync(() => {
        if (host.draining) return
        host.draining = true
        for (const link of [...host.links.values()]) link.drain(timeoutMs, "the edge is stopping")
      }),
    counts: () => ({ links: host.links.size, unregistered: host.unregistered.size })
  })
})

const makeHost = Effect.fnUntraced(function* (config: EdgeConfig) {
  const settings = linkSettings(config)
  const timers = yield* Timers
  const host: LinkHost = {
    settings,
    timers,
    store: yield* NodeStore,
    configs: yield* NodeConfigs,
    registry: yield* NodeRegistry,
    runs: yield* RunService,
    metrics: yield* TransportMetrics,
    log: yield* makeTransportLog,
    handles: new Handles(),
    throttle: new TokenThrottle(settings.failedTokensPerMinute),
    unregistered: new UnregisteredLimit(settings.maxUnregistered),
    takeovers: new Takeovers(timers, settings.takeoverProbeMs),
    sessions: new Set(),
    links: new Map(),
    draining: false,
    nextEpoch: 1
  }
  return host
})

const keepPulse = Effect.fnUntraced(function* (host: LinkHost) {
  const heartbeats = new Heartbeats(host.timers, host.settings.heartbeat, () => host.links.values())
  let cancelTraffic = () => {}
  const tellTraffic = () => {
    for (const session of host.sessions) session.countTraffic()
    cancelTraffic = host.timers.after(TRAFFIC_MS, tellTraffic)
  }
  heartbeats.start()
  tellTraffic()
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      heartbeats.stop()
      cancelTraffic()
    })
  )
})

const tlsOptions = (tls: NonNullable<EdgeConfig["listen"]["nodes"]["tls"]>) => ({
  certFile: tls.cert_file,
  keyFile: tls.key_file,
  ...(tls.client_ca_file === undefined ? {} : { clientCaFile: tls.client_ca_file })
})
