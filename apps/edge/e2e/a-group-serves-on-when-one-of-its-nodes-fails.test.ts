// Two nodes, and one of them is no good: it dies with a run, fails every run within milliseconds, or stands still with
// an open socket. The group serves on, within bounds that do not depend on luck.
import { describe, expect, it } from "vitest"
import type { AdminClient } from "./harness/AdminClient.ts"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { countPrompt, countText } from "./harness/countText.ts"
import { MockNode } from "./harness/MockNode.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually } from "./harness/waiting.ts"

/** What a busy machine may add to a bound. */
const SLACK_MS = 15_000

describe("a node that is killed before it started a run, and comes back", () => {
  // The grace of the defaults: a process may take its time to start.
  const shared = useEdge({ nodes: [mockNodeConfig("tower")], link: { resume_grace: "30s" } })

  it("is given the run again, which has nothing of the first attempt", async () => {
    const start = async () => {
      const node = new MockNode(shared.cleanup, {
        edge: shared.edge.nodes,
        token: tokenOf("tower"),
        name: "tower"
      })
      await shared.edge.admin.untilNode("tower", "routable")
      return node
    }
    const tower = await start()
    const stream = await shared.edge.admin.stream({
      adapter: "mock",
      target: "slow-start",
      prompt: `patience {"start_ms": 3000}`
    })
    await stream.until("dispatched")
    await tower.kill()
    await start()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("patience")
    expect(await shared.edge.admin.run(stream.runId)).toMatchObject({ attempt: 2, node: "tower-alias" })
  })
})

describe("a node that accepted a run and is killed before it started it", () => {
  const GRACE_MS = 1_000
  const shared = useEdge({
    nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop")],
    link: { resume_grace: `${GRACE_MS}ms` }
  })

  const join = async (id: string) => {
    const node = new MockNode(shared.cleanup, { edge: shared.edge.nodes, token: tokenOf(id), name: id })
    await shared.edge.admin.untilNode(id, "routable")
    return node
  }

  /** Longer than everything that happens before the kill, even on a busy machine. */
  const START_MS = 3_000

  /** A run that the tower has taken and not started. */
  const begin = async () => {
    const tower = await join("tower")
    const stream = await shared.edge.admin.stream({
      adapter: "mock",
      target: "slow-start",
      prompt: `patience {"start_ms": ${START_MS}}`
    })
    await stream.until("dispatched")
    return { tower, stream }
  }

  it("has its run ended by name when the grace is over, when there is nobody else", async () => {
    const { tower, stream } = await begin()
    const start = performance.now()
    await tower.kill()
    const end = await stream.finish()
    expect(end).toMatchObject({ type: "failed", code: "node_lost" })
    expect(performance.now() - start).toBeLessThan(GRACE_MS + SLACK_MS)
    expect(stream.text).toBe("")
    expect((await shared.edge.admin.node("tower")).slots_in_use).toBe(0)
  })

  it("or done elsewhere", async () => {
    const { tower, stream } = await begin()
    await join("laptop")
    const start = performance.now()
    await tower.kill()
    expect((await stream.finish()).type).toBe("completed")
    expect(performance.now() - start).toBeLessThan(START_MS + SLACK_MS)
    expect(stream.text).toBe("patience")
    const record = await shared.edge.admin.run(stream.runId)
    expect(record).toMatchObject({ attempt: 2, node: "laptop-alias", phase: "completed" })
  })

  it("or ended by name, when the other that might have taken it is lost as well", async () => {
    const { tower, stream } = await begin()
    const laptop = await join("laptop")
    const start = performance.now()
    await laptop.kill()
    await tower.kill()
    const end = await stream.finish()
    expect(end).toMatchObject({ type: "failed", code: "node_lost" })
    expect(performance.now() - start).toBeLessThan(GRACE_MS + SLACK_MS)
  })
})

describe("a node that fails every run within milliseconds", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop")],
    runs: { circuit: { failures: 5, window: "10s", open_for: "1s", fast: "500ms" } },
    link: { resume_grace: "300ms" }
  })

  const circuitOf = async (admin: AdminClient, id: string) => (await admin.node(id)).adapters[0]?.circuit

  it("is left alone while the other serves, is probed, recovers, and shows all that", async () => {
    const { edge } = shared
    const { admin } = edge
    const healthy = await shared.node("tower")
    const failing = await shared.node("laptop")
    healthy.onRun = (run) => run.answer("well")
    failing.onRun = (run) => run.failed("the gpu fell off", true)
    const one = async () => {
      const stream = await admin.stream({ adapter: "mock", target: "echo", prompt: "x" })
      const end = await stream.finish()
      expect(end.type, end.message).toBe("completed")
      return (await admin.run(stream.runId)).node
    }
    const metric = async (name: string) =>
      (await edge.metrics()).count(`iop_edge_circuit_${name}`, { node: "laptop-alias", adapter: "mock" })

    // The opening window: every run is served, and those that met the failing node failed over.
    while ((await circuitOf(admin, "laptop"))?.state !== "open") expect(await one()).toBe("tower-alias")
    expect(failing.runs.size).toBe(5)
    expect(await circuitOf(admin, "laptop")).toMatchObject({
      state: "open",
      reason: expect.stringContaining("the gpu fell off")
    })
    expect(await metric("state")).toBe(2)
    expect(await metric("opened_total")).toBe(1)
    const verdict = (await admin.explain("mock", "echo")).nodes.find(({ node }) => node === "laptop")
    expect(verdict).toMatchObject({
      chosen: false,
      reason: "circuit_open",
      message: expect.stringMatching(/tried again in \d+ s: the gpu fell off/)
    })
    expect((await circuitOf(admin, "tower"))?.state).toBe("closed")
    await edge.logged(/circuit/, ({ line }) => line.includes("laptop-alias") && line.includes("gpu fell off"))

    const [attemptsBefore, servedBefore] = [failing.runs.size, healthy.runs.size]
    for (let i = 0; i < 100; i++) expect(await one()).toBe("tower-alias")
    expect(healthy.runs.size - servedBefore).toBe(100)
    // Whatever reached the failing node were single probes.
    expect(failing.runs.size - attemptsBefore).toBeLessThanOrEqual(5)

    // It is probed while it still fails, and left alone for longer.
    const probed = failing.runs.size
    await eventually("a probe that fails", async () => {
      await one()
      return failing.runs.size > probed
    })
    expect(await metric("state")).toBe(2)

    failing.onRun = (run) => run.answer("well again")
    const nodes = new Set<string | undefined>()
    await eventually("both nodes to serve", async () => {
      nodes.add(await one())
      return nodes.size === 2
    })
    expect(await circuitOf(admin, "laptop")).toEqual({ state: "closed" })
    expect(await metric("state")).toBe(0)
    await edge.logged(/circuit.*closed|closed.*circuit/, ({ line }) => line.includes("laptop-alias"))
  })
})

describe("a node that stands still with an open socket", () => {
  const HEARTBEAT_MS = 400
  const shared = useEdge({
    nodes: [mockNodeConfig("tower", { slots: 4 }), mockNodeConfig("laptop", { slots: 4 })],
    link: { heartbeat_interval: `${HEARTBEAT_MS}ms`, resume_grace: "300ms" }
  })

  const RUNS = 24
  const TOKENS = 20

  const all = async () => {
    const start = performance.now()
    const streams = await Promise.all(
      Array.from({ length: RUNS }, () =>
        shared.edge.admin.stream({
          adapter: "mock",
          target: "count",
          prompt: countPrompt(TOKENS, { interval_ms: 10 })
        })
      )
    )
    for (const stream of streams) {
      const end = await stream.finish()
      expect(end.type, end.message).toBe("completed")
      expect(stream.text).toBe(countText(stream.runId, TOKENS))
    }
    return performance.now() - start
  }

  it("is suspect within two heartbeats, and costs the runs of the group no more than its detection", async () => {
    const { cleanup, edge } = shared
    const join = async (id: string) => {
      const node = new MockNode(cleanup, { edge: edge.nodes, token: tokenOf(id), name: id })
      await edge.admin.untilNode(id, "routable")
      return node
    }
    await join("tower")
    const alone = await all()
    const laptop = await join("laptop")
    laptop.signal("SIGSTOP")
    const start = performance.now()
    const suspect = edge.admin.untilNode("laptop", "suspect").then(() => performance.now() - start)
    const together = await all()
    expect(together).toBeLessThan(alone + 3 * HEARTBEAT_MS + SLACK_MS)
    // Two intervals without a frame, and the fraction of one in which the edge looks.
    expect(await suspect).toBeLessThan(2.5 * HEARTBEAT_MS + SLACK_MS)
    const runs = await edge.admin.runs(`?limit=${RUNS}`)
    expect(runs.map(({ node }) => node)).toEqual(Array.from({ length: RUNS }, () => "tower-alias"))
    // Some had been given to the stopped node before it was known, and were taken back.
    expect(runs.filter(({ attempt }) => attempt === 2).length).toBe(4)
  })
})
