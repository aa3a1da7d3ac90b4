// Every metric of the edge: its name with the unit, a sentence, and what it is moved by. Labels come from the
// configuration and from fixed lists alone, so that no request and no node can make a series.
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { Counter, Gauge, Histogram, type Registry } from "prom-client"
import { nodeState, nodeStates } from "../admin/nodeState.ts"
import type { RequestObserver } from "../http/HttpListener.ts"
import type { NodeEntry } from "../node/NodeEntry.ts"
import type { NodeRegistry } from "../node/NodeRegistry.ts"
import type { RunObserver } from "../run/RunObserver.ts"
import type { RunService } from "../run/RunService.ts"
import type { TransportMetrics } from "../transport/TransportMetrics.ts"

/** Seconds: from a token of a small model to a long answer. */
const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900]
/** Seconds of HTTP requests that are no runs. */
const requestSeconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60]

/** The adapter label of a run for an adapter that no node has. */
const UNKNOWN = "unknown"

const circuitValue = { closed: 0, half_open: 1, probing: 1, open: 2 } as const

/** Where current values are read from when somebody looks. */
export interface MetricsSources {
  readonly registry: Pick<NodeRegistry["Service"], "all">
  readonly runs: Pick<RunService["Service"], "counts">
  /** Monotonic milliseconds. */
  readonly now: () => number
}

export interface EdgeMetrics {
  readonly runs: RunObserver
  readonly http: RequestObserver
  readonly transport: TransportMetrics
  /** A listener (`http`, `ops`) closed a connection because it has as many as it may have. */
  readonly httpConnectionRefused: (listener: string) => void
  /** Current values are read from here from now on. */
  readonly observe: (sources: MetricsSources) => void
}

/** Declares the metrics in the registry. */
export const makeEdgeMetrics = (
  register: Registry,
  config: Pick<EdgeConfig, "nodes">,
  version: string
): EdgeMetrics => {
  const registers = [register]
  const adapters = new Set(config.nodes.flatMap((node) => node.adapters.map((adapter) => adapter.name)))
  const adapterLabel = (adapter: string) => (adapters.has(adapter) ? adapter : UNKNOWN)
  let sources: MetricsSources | undefined
  const entries = (): ReadonlyArray<NodeEntry> => sources?.registry.all() ?? []
  const each = (visit: (node: string, adapter: string, entry: NodeEntry) => void) => {
    for (const entry of entries()) {
      for (const { name } of entry.record.adapters) visit(entry.record.alias, name, entry)
    }
  }

  new Gauge({
    name: "iop_edge_build_info",
    help: "Always 1; the label says which version of the edge runs.",
    labelNames: ["version"],
    registers
  }).set({ version }, 1)

  const submitted = new Counter({
    name: "iop_edge_runs_submitted_total",
    help: "Runs that were accepted.",
    labelNames: ["adapter"],
    registers
  })
  const refused = new Counter({
    name: "iop_edge_runs_refused_total",
    help: "Runs that were refused when they were submitted, by failure code.",
    labelNames: ["adapter", "code"],
    registers
  })
  const ended = new Counter({
    name: "iop_edge_runs_total",
    help: "Runs that ended, by outcome: completed, cancelled or a failure code.",
    labelNames: ["adapter", "outcome"],
    registers
  })
  new Gauge({
    name: "iop_edge_runs_queued",
    help: "Runs that wait for a slot.",
    registers,
    collect() {
      this.set(sources?.runs.counts().queued ?? 0)
    }
  })
  new Gauge({
    name: "iop_edge_runs_in_flight",
    help: "Runs that a node has.",
    registers,
    collect() {
      this.set(sources?.runs.counts().inFlight ?? 0)
    }
  })
  const queueSeconds = new Histogram({
    name: "iop_edge_run_queue_seconds",
    help: "Time from submission to dispatch, in seconds.",
    labelNames: ["adapter"],
    buckets: seconds,
    registers
  })
  const firstEventSeconds = new Histogram({
    name: "iop_edge_run_first_event_seconds",
    help: "Time from submission to the first output, in seconds.",
    labelNames: ["adapter"],
    buckets: seconds,
    registers
  })
  const durationSeconds = new Histogram({
    name: "iop_edge_run_duration_seconds",
    help: "Time from submission to the end of the run, in seconds.",
    labelNames: ["adapter"],
    buckets: seconds,
    registers
  })
  const tokens = new Counter({
    name: "iop_edge_run_tokens_total",
    help: "Tokens that nodes reported, by direction: input or output.",
    labelNames: ["adapter", "direction"],
    registers
  })
  const attempts = new Counter({
    name: "iop_edge_run_attempts_total",
    help: "Attempts that ended, by node and result: completed, failed, cancelled, failed_over or node_lost.",
    labelNames: ["node", "adapter", "result"],
    registers
  })
  const slowConsumers = new Counter({
    name: "iop_edge_run_slow_consumers_total",
    help: "Readers of a run that were ended because they fell behind.",
    labelNames: ["adapter"],
    registers
  })
  const duplicates = new Counter({
    name: "iop_edge_run_duplicate_events_total",
    help: "Events that a node sent again although the edge already had them.",
    labelNames: ["node"],
    registers
  })
  const opened = new Counter({
    name: "iop_edge_circuit_opened_total",
    help: "Times that the circuit of an adapter on a node opened because runs failed fast.",
    labelNames: ["node", "adapter"],
    registers
  })

  new Gauge({
    name: "iop_edge_nodes",
    help: "Nodes of the configuration by state.",
    labelNames: ["state"],
    registers,
    collect() {
      for (const state of nodeStates) this.set({ state }, 0)
      for (const entry of entries()) this.inc({ state: nodeState(entry, 0).state })
    }
  })
  new Gauge({
    name: "iop_edge_node_connected",
    help: "Whether the node has a link: 1 or 0.",
    labelNames: ["node"],
    registers,
    collect() {
      for (const entry of entries()) this.set({ node: entry.record.alias }, entry.link === undefined ? 0 : 1)
    }
  })
  new Gauge({
    name: "iop_edge_slots",
    help: "Slots of an adapter on a node.",
    labelNames: ["node", "adapter"],
    registers,
    collect() {
      each((node, adapter, entry) => this.set({ node, adapter }, entry.slots(adapter).total))
    }
  })
  new Gauge({
    name: "iop_edge_slots_in_use",
    help: "Slots of an adapter on a node that runs hold.",
    labelNames: ["node", "adapter"],
    registers,
    collect() {
      each((node, adapter, entry) => this.set({ node, adapter }, entry.slots(adapter).inUse))
    }
  })
  new Gauge({
    name: "iop_edge_circuit_state",
    help: "Circuit of an adapter on a node: 0 closed, 1 tried with a single run, 2 open.",
    labelNames: ["node", "adapter"],
    registers,
    collect() {
      const now = sources?.now() ?? 0
      each((node, adapter, entry) =>
        this.set({ node, adapter }, circuitValue[entry.circuit(adapter)?.at(now).state ?? "closed"])
      )
    }
  })

  const connections = new Counter({
    name: "iop_edge_link_connections_total",
    help: "Connections of the node listener that were accepted.",
    registers
  })
  const connectionsRefused = new Counter({
    name: "iop_edge_link_connections_refused_total",
    help: "Connections of the node listener that were dropped before they could register, by reason.",
    labelNames: ["reason"],
    registers
  })
  const registrations = new Counter({
    name: "iop_edge_link_registrations_total",
    help: "Attempts of nodes to register, by outcome.",
    labelNames: ["outcome"],
    registers
  })
  const linksEnded = new Counter({
    name: "iop_edge_links_ended_total",
    help: "Registered links that ended, by reason.",
    labelNames: ["reason"],
    registers
  })
  const protocolErrors = new Counter({
    name: "iop_edge_link_protocol_errors_total",
    help: "Rules of the protocol that a peer broke, by rule.",
    labelNames: ["kind"],
    registers
  })
  const strayEvents = new Counter({
    name: "iop_edge_link_stray_events_total",
    help: "Run events that were dropped because their run is unknown, ended or another node's.",
    labelNames: ["kind"],
    registers
  })
  const unknownBodies = new Counter({
    name: "iop_edge_link_unknown_bodies_total",
    help: "Frames of nodes that this version does not know and ignored.",
    registers
  })
  const unknownFields = new Counter({
    name: "iop_edge_link_unknown_fields_total",
    help: "Fields in frames of nodes that this version does not know and ignored.",
    registers
  })
  const frames = new Counter({
    name: "iop_edge_link_frames_total",
    help: "Frames over the links of nodes, by direction: in or out.",
    labelNames: ["direction"],
    registers
  })
  const bytes = new Counter({
    name: "iop_edge_link_bytes_total",
    help: "Bytes over the links of nodes, headers included, by direction: in or out.",
    labelNames: ["direction"],
    registers
  })

  const requests = new Counter({
    name: "iop_edge_http_requests_total",
    help: "HTTP requests that were answered, by path pattern, method and status class.",
    labelNames: ["route", "method", "status"],
    registers
  })
  const requestDuration = new Histogram({
    name: "iop_edge_http_request_seconds",
    help: "Time from a request's headers to the end of its answer, in seconds.",
    labelNames: ["route"],
    buckets: requestSeconds,
    registers
  })

  const httpRefused = new Counter({
    name: "iop_edge_http_connections_refused_total",
    help: "Connections that an HTTP listener closed because it had as many as the descriptors allow, by listener.",
    labelNames: ["listener"],
    registers
  })

  return {
    httpConnectionRefused: (listener) => httpRefused.inc({ listener }),
    observe: (given) => {
      sources = given
    },
    http: ({ route, method, status, durationMs }) => {
      requests.inc({ route, method, status: `${Math.floor(status / 100)}xx` })
      requestDuration.observe({ route }, durationMs / 1000)
    },
    transport: {
      connectionAccepted: () => connections.inc(),
      connectionRefused: (reason) => connectionsRefused.inc({ reason }),
      registration: (outcome) => registrations.inc({ outcome }),
      linkEnded: (reason) => linksEnded.inc({ reason }),
      protocolError: (kind) => protocolErrors.inc({ kind }),
      strayEvent: (kind) => strayEvents.inc({ kind }),
      unknownBody: () => unknownBodies.inc(),
      unknownFields: (count) => unknownFields.inc(count),
      traffic: ({ framesIn, framesOut, bytesIn, bytesOut }) => {
        frames.inc({ direction: "in" }, framesIn)
        frames.inc({ direction: "out" }, framesOut)
        bytes.inc({ direction: "in" }, bytesIn)
        bytes.inc({ direction: "out" }, bytesOut)
      }
    },
    runs: {
      submitted: (spec) => submitted.inc({ adapter: adapterLabel(spec.adapter) }),
      refused: (spec, code) => refused.inc({ adapter: adapterLabel(spec.adapter), code }),
      dispatched: (adapter, _node, queueMs) =>
        queueSeconds.observe({ adapter: adapterLabel(adapter) }, queueMs / 1000),
      attemptEnded: (adapter, node, result) => attempts.inc({ node, adapter: adapterLabel(adapter), result }),
      finished: (run) => {
        const adapter = adapterLabel(run.adapter)
        ended.inc({ adapter, outcome: run.failure?.code ?? run.phase })
        durationSeconds.observe({ adapter }, run.totalMs / 1000)
        if (run.firstEventMs !== undefined) firstEventSeconds.observe({ adapter }, run.firstEventMs / 1000)
        if (run.usage?.inputTokens !== undefined) {
          tokens.inc({ adapter, direction: "input" }, run.usage.inputTokens)
        }
        if (run.usage?.outputTokens !== undefined) {
          tokens.inc({ adapter, direction: "output" }, run.usage.outputTokens)
        }
      },
      circuit: (node, adapter, open) => {
        if (open) opened.inc({ node, adapter: adapterLabel(adapter) })
      },
      slowConsumer: (run) => slowConsumers.inc({ adapter: adapterLabel(run.adapter) }),
      duplicateEvent: (node) => duplicates.inc({ node })
    }
  }
}
