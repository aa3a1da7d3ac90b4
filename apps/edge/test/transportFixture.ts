// The transport on a real port, over the real node domain and runs that only record what they are told.
import { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { chatInput } from "@iop/platform-common/protocol/runInputText"
import { Context, Effect, Layer, Logger, ManagedRuntime, Schema } from "effect"
import type { Address } from "../e2e/harness/RawHttp.ts"
import { RawNode, type RegisterOptions } from "../e2e/harness/RawNode.ts"
import { eventually } from "../e2e/harness/waiting.ts"
import { NodeConfigs } from "../src/node/NodeConfigs.ts"
import type { AttemptSink, NodeLink, RunDispatch } from "../src/node/NodeLink.ts"
import { NodeRegistry } from "../src/node/NodeRegistry.ts"
import { NodeStore } from "../src/node/NodeStore.ts"
import { Timers } from "../src/node/Timers.ts"
import type { HeldRunAnswer, HeldRunClaim } from "../src/run/HeldRun.ts"
import { RunService } from "../src/run/RunService.ts"
import { NodeTransport } from "../src/transport/NodeTransport.ts"
import { TransportMetrics } from "../src/transport/TransportMetrics.ts"
import { circuitLimits } from "./fakeNodes.ts"

export const tokenOf = (node: string) => `token-of-${node}-0123456789`

/** What the transport told the runs. */
export interface RecordedRuns {
  /** Answers of the next registrations; without one every held run is given up. */
  readonly answers: Map<string, HeldRunAnswer>
  readonly claims: Array<HeldRunClaim>
  readonly lost: Array<{ readonly epoch: number; readonly reason: string; readonly mayResume: boolean }>
}

export interface LogLine {
  readonly level: string
  readonly text: string
}

export interface TestEdge extends AsyncDisposable {
  readonly address: Address
  readonly registry: NodeRegistry["Service"]
  readonly runs: RecordedRuns
  readonly log: ReadonlyArray<LogLine>
  readonly counts: () => { readonly links: number; readonly unregistered: number }
  /** Calls of a metric so far, with the fixed word it was called with: `protocolError:frame_empty`. */
  readonly count: (metric: string) => number
  readonly drain: (timeoutMs: number) => Promise<void>
  /** Stops the edge while its nodes are still there. */
  readonly stop: () => Promise<void>
  /** A raw connection, closed with the edge. */
  readonly connect: () => Promise<RawNode>
  /** A raw node that is registered and, with `offers`, ready. */
  readonly node: (name: string, options?: Partial<RegisterOptions>) => Promise<RawNode>
  /** The link of a connected node, once it is there. */
  readonly link: (name: string) => Promise<NodeLink>
}

export interface EdgeChange {
  readonly nodes?: ReadonlyArray<string>
  /** Settings of the section `link`. */
  readonly link?: Readonly<Record<string, unknown>>
  /** `listen.nodes.tls`. */
  readonly tls?: Readonly<Record<string, string>>
  readonly maxConnections?: number
}

export const startEdge = async (change: EdgeChange = {}): Promise<TestEdge> => {
  const config = Schema.decodeUnknownSync(EdgeConfig)({
    edge: { id: "test-edge" },
    listen: {
      nodes: { host: "127.0.0.1", port: 0, ...(change.tls === undefined ? {} : { tls: change.tls }) }
    },
    nodes: (change.nodes ?? ["tower", "attic"]).map((id) => ({
      id,
      alias: `${id}-box`,
      token: tokenOf(id),
      adapters: [{ name: "mock", type: "mock", slots: 4 }]
    })),
    link: change.link ?? {}
  })
  const recorded: RecordedRuns = { answers: new Map(), claims: [], lost: [] }
  const log: Array<LogLine> = []
  const counters = new Map<string, number>()
  const runtime = ManagedRuntime.make(
    NodeTransport.layer(
      config,
      change.maxConnections === undefined ? {} : { maxConnections: change.maxConnections }
    ).pipe(
      Layer.provideMerge(Layer.succeed(RunService, recordingRuns(recorded))),
      Layer.provideMerge(NodeRegistry.layer(circuitLimits)),
      Layer.provideMerge(NodeConfigs.layer),
      Layer.provideMerge(NodeStore.layer(config)),
      Layer.provideMerge(Timers.layer),
      Layer.provideMerge(Layer.succeed(TransportMetrics, recordingMetrics(counters))),
      Layer.provideMerge(Logger.layer([recordingLogger(log)]))
    )
  )
  const context = await runtime.context()
  const transport = Context.get(context, NodeTransport)
  const registry = Context.get(context, NodeRegistry)
  const cleanup = new AsyncDisposableStack()
  cleanup.defer(() => runtime.dispose())
  const { address } = transport
  return {
    address,
    registry,
    runs: recorded,
    log,
    counts: transport.counts,
    count: (metric) => counters.get(metric) ?? 0,
    drain: (timeoutMs) => Effect.runPromise(transport.drain(timeoutMs)),
    stop: () => runtime.dispose(),
    connect: () => RawNode.connect(cleanup, address),
    node: (name, options) => RawNode.register(cleanup, address, { token: tokenOf(name), ...options }),
    link: (name) => eventually(`the link of ${name}`, () => registry.find(name)?.link),
    [Symbol.asyncDispose]: () => cleanup.disposeAsync()
  }
}

export const dispatch = (change: Partial<RunDispatch> = {}): RunDispatch => ({
  runId: "run-1",
  attempt: 1,
  adapter: "mock",
  target: "echo",
  input: chatInput("hello"),
  stream: true,
  session: "",
  deadlineMs: 0,
  traceparent: "",
  ...change
})

/** A sink that writes down what it gets: `1 delta`, and `end` for each end of a read. */
export class RecordingSink implements AttemptSink {
  readonly calls: Array<string> = []
  bytes = 0
  onEvent: AttemptSink["onEvent"] = (seq, event, bytes) => {
    const text = event.type === "delta" && event.kind === "text" ? ` ${event.text}` : ""
    this.calls.push(`${seq} ${event.type}${text}`)
    this.bytes += bytes
  }
  onReadEnd: AttemptSink["onReadEnd"] = () => {
    this.calls.push("end")
  }
  /** The events alone. */
  get events(): ReadonlyArray<string> {
    return this.calls.filter((call) => call !== "end")
  }
}

const unused = (): never => {
  throw new Error("the transport has no business here")
}

const recordingRuns = (recorded: RecordedRuns): RunService["Service"] => ({
  submit: unused,
  get: unused,
  list: unused,
  read: unused,
  events: unused,
  cancel: unused,
  explain: unused,
  drain: Effect.sync(unused),
  stop: Effect.sync(unused),
  draining: unused,
  counts: unused,
  resume: (_entry, _link, held) => {
    recorded.claims.push(...held)
    return held.map((claim) => recorded.answers.get(claim.runId) ?? { resume: false, reason: "not known" })
  },
  linkLost: (link, reason, mayResume) => {
    recorded.lost.push({ epoch: link.epoch, reason, mayResume })
  }
})

const recordingMetrics = (counters: Map<string, number>): TransportMetrics => {
  const add = (name: string, amount = 1) => counters.set(name, (counters.get(name) ?? 0) + amount)
  return {
    connectionAccepted: () => add("connectionAccepted"),
    connectionRefused: (reason) => add(`connectionRefused:${reason}`),
    registration: (outcome) => add(`registration:${outcome}`),
    linkEnded: (reason) => add(`linkEnded:${reason}`),
    protocolError: (kind) => add(`protocolError:${kind}`),
    strayEvent: (kind) => add(`strayEvent:${kind}`),
    unknownBody: () => add("unknownBody"),
    unknownFields: (count) => add("unknownFields", count),
    traffic: (traffic) => {
      add("framesIn", traffic.framesIn)
      add("framesOut", traffic.framesOut)
      add("bytesIn", traffic.bytesIn)
      add("bytesOut", traffic.bytesOut)
    }
  }
}

const recordingLogger = (log: Array<LogLine>) =>
  Logger.make(({ logLevel, message }) => {
    log.push({ level: logLevel, text: JSON.stringify(message) })
  })
