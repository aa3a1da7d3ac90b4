// The edge is killed and started again, ten times, under nodes that nobody touches.
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { countPrompt, countText } from "./harness/countText.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { MockNode } from "./harness/MockNode.ts"
import { eventually } from "./harness/waiting.ts"

const RESTARTS = 10
const ids = ["tower", "laptop"]
/** What a link must hold for to count as a good one is two heartbeats; these are 10 ms apart. */
const DELTAS = 40

describe("an edge that is killed and restarted", () => {
  let cleanup: AsyncDisposableStack
  beforeEach(() => {
    cleanup = new AsyncDisposableStack()
  })
  afterEach(() => cleanup.disposeAsync())

  it("has every node back each time, and each serves a run", { timeout: 120_000 }, async () => {
    const config = {
      nodes: ids.map((id) =>
        mockNodeConfig(id, { adapters: [{ name: `on-${id}`, type: "mock", slots: 2 }] })
      ),
      // Links of a few hundred milliseconds count as good ones, after which nodes redial soon.
      link: { heartbeat_interval: "100ms", suspect_after: 10, dead_after: 20 }
    }
    let edge = await EdgeProcess.start(cleanup, config)
    const ports = {
      nodes: { port: edge.nodes.port },
      http: { port: edge.http.port },
      ops: { port: edge.ops.port }
    }
    const nodes = ids.map((id) => new MockNode(cleanup, { edge: edge.nodes, token: tokenOf(id), name: id }))
    const serve = async (id: string) => {
      await edge.admin.untilNode(id, "routable", 40_000)
      const stream = await edge.admin.stream({
        adapter: `on-${id}`,
        target: "count",
        prompt: countPrompt(50)
      })
      const end = await stream.finish()
      expect(end.type, end.message).toBe("completed")
      expect(stream.text).toBe(countText(stream.runId, 50))
    }
    for (const id of ids) await serve(id)
    for (let restart = 0; restart < RESTARTS; restart++) {
      // In the middle of a run, as it comes.
      const cut = await edge.admin.stream({
        adapter: `on-${ids[restart % ids.length]}`,
        target: "count",
        prompt: countPrompt(1_000, { interval_ms: 10 })
      })
      await eventually("a while of the run", () => cut.events.length > DELTAS)
      await edge.kill()
      expect(await cut.over).toBe(false)
      edge = await EdgeProcess.start(cleanup, { ...config, listen: ports })
      await Promise.all(ids.map(serve))
      const { samples } = await edge.metrics()
      const connected = samples.filter(({ name }) => name === "iop_edge_node_connected")
      expect(connected.map(({ value }) => value)).toEqual([1, 1])
    }
    for (const node of nodes) expect(node.exit).toBeUndefined()
  })
})
