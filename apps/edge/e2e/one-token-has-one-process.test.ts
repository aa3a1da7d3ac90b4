// Two processes with one token: a stranger's copy, a successor, and one that stands still. Real fake nodes.
import { describe, expect, it } from "vitest"
import { ChaosProxy } from "./harness/ChaosProxy.ts"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { countPrompt, countText } from "./harness/countText.ts"
import { MockNode } from "./harness/MockNode.ts"
import type { Address } from "./harness/RawHttp.ts"
import { useEdge } from "./harness/useEdge.ts"

const PROBE_MS = 500
/** What a busy machine may add to a bound. */
const SLACK_MS = 15_000

describe("an edge that two processes call with one token", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower")],
    // Death by silence takes so long here that it can't be what lets a newcomer in.
    link: { heartbeat_interval: "10s", takeover_probe: `${PROBE_MS}ms`, resume_grace: "20s" }
  })

  const start = (name: string, edge: Address = shared.edge.nodes) =>
    new MockNode(shared.cleanup, { edge, token: tokenOf("tower"), name })
  const routable = () => shared.edge.admin.untilNode("tower", "routable")
  const registrations = async (outcome: string) =>
    (await shared.edge.metrics()).count("iop_edge_link_registrations_total", { outcome })
  const linksEnded = async () => (await shared.edge.metrics()).count("iop_edge_links_ended_total")
  const submit = (tokens: number, intervalMs: number) =>
    shared.edge.admin.stream({
      adapter: "mock",
      target: "count",
      prompt: countPrompt(tokens, { interval_ms: intervalMs })
    })
  const serves = async () => {
    const stream = await submit(20, 0)
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe(countText(stream.runId, 20))
  }

  it("refuses a second machine, as often as it asks, and nothing flaps", async () => {
    start("first")
    const first = await routable()
    const [refusedBefore, endedBefore] = [await registrations("already_connected"), await linksEnded()]
    const stream = await submit(400, 10)
    await stream.until("delta")
    const second = start("second")
    const line = await second.line("why it is refused", (text) =>
      text.includes("already_connected") ? text : undefined
    )
    expect(line).toContain(first.remote)
    await shared.edge.untilMetrics(
      "the second refusal",
      (metrics) =>
        metrics.count("iop_edge_link_registrations_total", { outcome: "already_connected" }) >=
        refusedBefore + 2
    )
    expect(second.exit).toBeUndefined()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe(countText(stream.runId, 400))
    const { epoch, remote, last_disconnect } = await shared.edge.admin.node("tower")
    expect([epoch, remote]).toEqual([first.epoch, first.remote])
    expect(last_disconnect).toEqual(first.last_disconnect)
    expect(await linksEnded()).toBe(endedBefore)
    await serves()
  })

  it("ND5 lets a restarted process in at once, and ends the runs of the one before", async () => {
    const first = start("first")
    const { epoch } = await routable()
    const stream = await submit(1_000, 10)
    await stream.until("delta")
    await first.kill()
    start("restarted")
    const node = await routable()
    expect(node.epoch).toBeGreaterThan(epoch ?? 0)
    // Its runs of before are over then, long before their grace is.
    const end = await stream.finish()
    expect(end.code).toBe("node_lost")
    expect((await shared.edge.admin.run(stream.runId)).total_ms).toBeLessThan(15_000)
    await serves()
  })

  it("lets a restarted process in although the edge never heard that the first one ended", async () => {
    const proxy = await ChaosProxy.open(shared.cleanup, shared.edge.nodes)
    const first = start("first", proxy.address)
    const { epoch } = await routable()
    // As a machine does that loses its power.
    proxy.blackhole("up", "down")
    await first.kill()
    const begin = performance.now()
    const second = start("restarted", proxy.address)
    await second.line("that it is registered", (line) => line.includes("registered"))
    expect(performance.now() - begin).toBeGreaterThan(PROBE_MS)
    expect((await routable()).epoch).toBeGreaterThan(epoch ?? 0)
    expect([...second.stdout, ...second.stderr].join("\n")).not.toContain("already_connected")
    await serves()
  })

  it("replaces a process that stands still within the time of its probe", async () => {
    const frozen = start("frozen")
    const { epoch } = await routable()
    const stream = await submit(1_000, 10)
    await stream.until("delta")
    frozen.signal("SIGSTOP")
    const before = (await shared.edge.metrics()).count("iop_edge_links_ended_total", { reason: "taken_over" })
    const newcomer = start("newcomer")
    const begin = performance.now()
    await newcomer.line("that it is registered", (line) => line.includes("registered"))
    // Its own start is part of it.
    expect(performance.now() - begin).toBeLessThan(PROBE_MS + SLACK_MS)
    const node = await routable()
    expect(node.epoch).toBeGreaterThan(epoch ?? 0)
    expect(node.last_disconnect?.reason).toMatch(/did not answer for 500 ms/)
    const end = await stream.finish()
    expect(end.code).toBe("node_lost")
    expect((await shared.edge.metrics()).count("iop_edge_links_ended_total", { reason: "taken_over" })).toBe(
      before + 1
    )
    await serves()
    frozen.signal("SIGCONT")
    await frozen.line("why it lost its place", (line) => line.includes("took its place"))
    expect((await shared.edge.admin.node("tower")).epoch).toBe(node.epoch)
  })
})
