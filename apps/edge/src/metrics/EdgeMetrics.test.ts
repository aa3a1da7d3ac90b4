// Each metric is moved by what it counts, through the interfaces of those who report; a metric that nobody here moves
// fails the last test.
import { assert, describe, it } from "@effect/vitest"
import { NodeConfig } from "@iop/platform-common/config/NodeConfig"
import { Schema } from "effect"
import { Registry } from "prom-client"
import { entry, FakeLink, status } from "../../test/fakeNodes.ts"
import { spec } from "../../test/runFixture.ts"
import type { NodeEntry } from "../node/NodeEntry.ts"
import type { RunSnapshot } from "../run/RunSpec.ts"
import { type EdgeMetrics, makeEdgeMetrics } from "./EdgeMetrics.ts"

const config = {
  nodes: [
    Schema.decodeUnknownSync(NodeConfig)({
      id: "a",
      alias: "a",
      token: "t",
      adapters: [{ name: "mock", type: "mock" }]
    })
  ]
}

const run: RunSnapshot = {
  id: "r1",
  adapter: "mock",
  target: "echo",
  caller: "test",
  detached: false,
  phase: "completed",
  node: "a",
  attempt: 1,
  attempts: [],
  submittedAt: "2026-01-01T00:00:00.000Z",
  queueMs: 20,
  firstEventMs: 200,
  totalMs: 2000,
  events: 3,
  usage: { inputTokens: 7, outputTokens: 11 },
  slotHeld: false,
  selection: []
}

const setup = () => {
  const registry = new Registry()
  const metrics = makeEdgeMetrics(registry, config, "1.2.3")
  /** The lines of the page without comments, as series and value. */
  const page = async () =>
    new Map(
      (await registry.metrics())
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("#"))
        .map((line) => {
          const space = line.lastIndexOf(" ")
          return [line.slice(0, space), Number(line.slice(space + 1))] as const
        })
    )
  return { registry, metrics, page }
}

/** A ready node with one of four slots taken. */
const busyNode = (): NodeEntry => {
  const node = entry("a")
  node.link = new FakeLink()
  node.status = status(["echo"])
  node.claim("mock", 0, 1)
  return node
}

const observeNodes = (metrics: EdgeMetrics, entries: ReadonlyArray<NodeEntry>, now = 0) =>
  metrics.observe({
    registry: { all: () => entries },
    runs: { counts: () => ({ queued: 3, inFlight: 5 }) },
    now: () => now
  })

/** What moves which series, and to what. Histograms are looked at by their sum. */
const moves: ReadonlyArray<[series: string, value: number, move: (metrics: EdgeMetrics) => void]> = [
  [`iop_edge_build_info{version="1.2.3"}`, 1, () => {}],
  [`iop_edge_runs_submitted_total{adapter="mock"}`, 1, ({ runs }) => runs.submitted(spec())],
  [
    `iop_edge_runs_refused_total{adapter="mock",code="queue_full"}`,
    1,
    ({ runs }) => runs.refused(spec(), "queue_full")
  ],
  [`iop_edge_runs_total{adapter="mock",outcome="completed"}`, 1, ({ runs }) => runs.finished(run)],
  [
    `iop_edge_runs_total{adapter="mock",outcome="node_lost"}`,
    1,
    ({ runs }) =>
      runs.finished({ ...run, phase: "failed", failure: { code: "node_lost", message: "", retryable: true } })
  ],
  ["iop_edge_runs_queued", 3, (metrics) => observeNodes(metrics, [])],
  ["iop_edge_runs_in_flight", 5, (metrics) => observeNodes(metrics, [])],
  [`iop_edge_run_queue_seconds_sum{adapter="mock"}`, 0.02, ({ runs }) => runs.dispatched("mock", "a", 20)],
  [`iop_edge_run_first_event_seconds_sum{adapter="mock"}`, 0.2, ({ runs }) => runs.finished(run)],
  [`iop_edge_run_duration_seconds_sum{adapter="mock"}`, 2, ({ runs }) => runs.finished(run)],
  [`iop_edge_run_tokens_total{adapter="mock",direction="input"}`, 7, ({ runs }) => runs.finished(run)],
  [`iop_edge_run_tokens_total{adapter="mock",direction="output"}`, 11, ({ runs }) => runs.finished(run)],
  [
    `iop_edge_run_attempts_total{node="a",adapter="mock",result="failed_over"}`,
    1,
    ({ runs }) => runs.attemptEnded("mock", "a", "failed_over")
  ],
  [`iop_edge_run_slow_consumers_total{adapter="mock"}`, 1, ({ runs }) => runs.slowConsumer(run)],
  [`iop_edge_run_duplicate_events_total{node="a"}`, 1, ({ runs }) => runs.duplicateEvent("a")],
  [
    `iop_edge_circuit_opened_total{node="a",adapter="mock"}`,
    1,
    ({ runs }) => {
      runs.circuit("a", "mock", true, "refused")
      runs.circuit("a", "mock", false, "")
    }
  ],
  [`iop_edge_nodes{state="routable"}`, 1, (metrics) => observeNodes(metrics, [busyNode(), entry("b")])],
  [`iop_edge_nodes{state="offline"}`, 1, (metrics) => observeNodes(metrics, [busyNode(), entry("b")])],
  [`iop_edge_node_connected{node="a"}`, 1, (metrics) => observeNodes(metrics, [busyNode()])],
  [`iop_edge_node_connected{node="b"}`, 0, (metrics) => observeNodes(metrics, [entry("b")])],
  [`iop_edge_slots{node="a",adapter="mock"}`, 4, (metrics) => observeNodes(metrics, [busyNode()])],
  [`iop_edge_slots_in_use{node="a",adapter="mock"}`, 1, (metrics) => observeNodes(metrics, [busyNode()])],
  [
    `iop_edge_circuit_state{node="a",adapter="mock"}`,
    2,
    (metrics) => {
      const node = busyNode()
      for (let failures = 0; failures < 5; failures++) node.circuit("mock")?.failedFast(0, false, "refused")
      observeNodes(metrics, [node], 1)
    }
  ],
  ["iop_edge_link_connections_total", 1, ({ transport }) => transport.connectionAccepted()],
  [
    `iop_edge_link_connections_refused_total{reason="tls"}`,
    1,
    ({ transport }) => transport.connectionRefused("tls")
  ],
  [
    `iop_edge_link_registrations_total{outcome="unknown_token"}`,
    1,
    ({ transport }) => transport.registration("unknown_token")
  ],
  [`iop_edge_links_ended_total{reason="heartbeat"}`, 1, ({ transport }) => transport.linkEnded("heartbeat")],
  [
    `iop_edge_link_protocol_errors_total{kind="frame_too_large"}`,
    1,
    ({ transport }) => transport.protocolError("frame_too_large")
  ],
  [`iop_edge_link_stray_events_total{kind="forged"}`, 1, ({ transport }) => transport.strayEvent("forged")],
  ["iop_edge_link_unknown_bodies_total", 1, ({ transport }) => transport.unknownBody()],
  ["iop_edge_link_unknown_fields_total", 3, ({ transport }) => transport.unknownFields(3)],
  ...(["in", "out"] as const).flatMap((direction): typeof moves => {
    const traffic = { framesIn: 1, framesOut: 1, bytesIn: 9, bytesOut: 9 }
    return [
      [
        `iop_edge_link_frames_total{direction="${direction}"}`,
        1,
        ({ transport }) => transport.traffic(traffic)
      ],
      [
        `iop_edge_link_bytes_total{direction="${direction}"}`,
        9,
        ({ transport }) => transport.traffic(traffic)
      ]
    ]
  }),
  [
    `iop_edge_http_connections_refused_total{listener="ops"}`,
    1,
    (metrics) => metrics.httpConnectionRefused("ops")
  ],
  [
    `iop_edge_http_requests_total{route="/admin/v1/nodes",method="GET",status="2xx"}`,
    1,
    ({ http }) => http({ route: "/admin/v1/nodes", method: "GET", status: 204, durationMs: 500 })
  ],
  [
    `iop_edge_http_request_seconds_sum{route="/admin/v1/nodes"}`,
    0.5,
    ({ http }) => http({ route: "/admin/v1/nodes", method: "GET", status: 204, durationMs: 500 })
  ]
]

describe("metrics", () => {
  for (const [series, value, move] of moves) {
    it(`${series} is ${value}`, async () => {
      const { metrics, page } = setup()
      move(metrics)
      assert.strictEqual((await page()).get(series), value)
    })
  }

  it("are all moved by a test", () => {
    const moved = new Set(moves.map(([series]) => series.replace(/\{.*|_sum\b.*/, "")))
    const declared = setup()
      .registry.getMetricsAsArray()
      .map(({ name }) => name)
      .filter((name) => name.startsWith("iop_"))
    assert.isAbove(declared.length, 20)
    assert.deepStrictEqual(
      declared.filter((name) => !moved.has(name)),
      []
    )
  })

  it("have a prefix, a unit that Prometheus knows and a sentence", () => {
    for (const metric of setup()
      .registry.getMetricsAsArray()
      .filter(({ name }) => name.startsWith("iop_"))) {
      assert.match(metric.name, /^iop_edge_[a-z_]+$/)
      assert.match(metric.help, /^[A-Z].*\.$/)
      if (String(metric.type) === "counter") assert.match(metric.name, /_total$/)
      else assert.notMatch(metric.name, /_total$/)
      if (String(metric.type) === "histogram") assert.match(metric.name, /_seconds$/)
    }
  })

  it("OB2 make no series for what callers invent", async () => {
    const { metrics, page } = setup()
    observeNodes(metrics, [busyNode()])
    const call = (name: string) => {
      metrics.runs.submitted(spec({ adapter: name, target: name, caller: name }))
      metrics.runs.refused(spec({ adapter: name }), "target_not_found")
      metrics.runs.finished({ ...run, id: name, adapter: name, target: name, caller: name })
      metrics.runs.slowConsumer({ ...run, adapter: name })
    }
    call("first")
    const before = (await page()).size
    for (let index = 0; index < 1000; index++) call(`invented-${index}`)
    assert.strictEqual((await page()).size, before)
  })
})
