// Four slots and room for thirty to wait: of fifty at once, thirty-four are served in the order in which they came and
// sixteen are told that the queue is full.
import { describe, expect, it } from "vitest"
import { ApiRefusal, type ApiStream } from "./harness/AdminClient.ts"
import { mockNodeConfig } from "./harness/config.ts"
import type { RawRun } from "./harness/RawRun.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually } from "./harness/waiting.ts"

describe("an edge with four slots and a queue of thirty", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower", { slots: 4 })],
    runs: { queue_limit: 30 },
    link: { resume_grace: "300ms" }
  })

  it("serves 34 of 50 in order and refuses 16 with queue_full", async () => {
    const node = await shared.node("tower")
    const open: Array<RawRun> = []
    const order: Array<string> = []
    node.onRun = (run) => {
      open.push(run)
      order.push(run.request.runId)
    }
    const results = await Promise.all(
      Array.from({ length: 50 }, () =>
        shared.edge.admin
          .stream({ adapter: "mock", target: "echo", prompt: "x" })
          .catch((refusal: ApiRefusal): ApiRefusal => refusal)
      )
    )
    const streams = results.filter((result): result is ApiStream => !(result instanceof ApiRefusal))
    const refusals = results.filter((result) => result instanceof ApiRefusal)
    expect(streams.length).toBe(34)
    expect(refusals.length).toBe(16)
    for (const { problem } of refusals) {
      expect(problem).toMatchObject({ status: 503, code: "queue_full" })
      expect(Number(problem.retryAfter)).toBeGreaterThanOrEqual(1)
      expect(problem.message).toMatch(/30/)
    }
    const metrics = await shared.edge.metrics()
    expect(metrics.sum("iop_edge_runs_queued")).toBe(30)
    expect(metrics.sum("iop_edge_runs_in_flight")).toBe(4)
    expect(metrics.count("iop_edge_runs_refused_total", { code: "queue_full" })).toBe(16)
    // In the order of their submission: the list has the newest first.
    const accepted = (await shared.edge.admin.runs("?active=true")).map(({ id }) => id).reverse()
    expect(accepted.length).toBe(34)
    await eventually("four runs at the node", () => open.length === 4)
    while (order.length < 34 || open.length > 0) {
      const run = open.shift()
      if (run === undefined) await eventually("the next run", () => open.length > 0)
      else run.answer("served")
    }
    const ends = await Promise.all(streams.map((stream) => stream.finish()))
    expect(ends.map(({ type }) => type)).toEqual(Array.from({ length: 34 }, () => "completed"))
    expect(order).toEqual(accepted)
  })
})
