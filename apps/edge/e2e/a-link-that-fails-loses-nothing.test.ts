// What becomes of links and of the runs on them when the network fails: real fake nodes behind the chaos proxy, whose
// answers show every byte that is lost, doubled or swapped. The clocks are about a tenth of the defaults.
import { describe, expect, it } from "vitest"
import type { ApiStream } from "./harness/AdminClient.ts"
import { ChaosProxy } from "./harness/ChaosProxy.ts"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { countPrompt, countText } from "./harness/countText.ts"
import { MockNode } from "./harness/MockNode.ts"
import { openEnds } from "./harness/openEnds.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually } from "./harness/waiting.ts"

const HEARTBEAT_MS = 400
const TOKENS = 400

/** An edge that gives lost runs this long, and what its tests do with it. */
const useNetwork = (resumeGrace: string) => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower")],
    link: { heartbeat_interval: `${HEARTBEAT_MS}ms`, resume_grace: resumeGrace }
  })

  const join = async () => {
    const { cleanup, edge } = shared
    const proxy = await ChaosProxy.open(cleanup, edge.nodes)
    const node = new MockNode(cleanup, { edge: proxy.address, token: tokenOf("tower"), name: "tower" })
    const { epoch } = await edge.admin.untilNode("tower", "routable")
    return { proxy, node, epoch: epoch ?? 0 }
  }

  /** A run in the middle of its answer. */
  const begin = async (intervalMs = 5) => {
    const stream = await shared.edge.admin.stream({
      adapter: "mock",
      target: "count",
      prompt: countPrompt(TOKENS, { interval_ms: intervalMs })
    })
    await stream.until("delta")
    return stream
  }

  const expectWhole = async (stream: ApiStream) => {
    const end = await stream.finish()
    expect(end.type, end.message).toBe("completed")
    expect(stream.text).toBe(countText(stream.runId, TOKENS))
    expect(stream.events.filter(({ type }) => type === "dispatched").length).toBe(1)
  }

  const ended = async (reason: string) =>
    (await shared.edge.metrics()).count("iop_edge_links_ended_total", { reason })

  /** One end of one link is left at each side. */
  const expectNoZombie = (proxy: ChaosProxy) =>
    eventually(
      "one end of a link at each side",
      () =>
        openEnds({ port: shared.edge.nodes.port }) === 1 && openEnds({ peerPort: proxy.address.port }) === 1
    )

  return { shared, join, begin, expectWhole, ended, expectNoZombie }
}

describe("an edge whose network fails for longer than it waits", () => {
  const { shared, join, begin, ended, expectNoZombie } = useNetwork("1s")

  it("LK1 a half-open link is suspect, then dead, its run ends, and the node comes back by itself", async () => {
    const { proxy, node, epoch } = await join()
    const stream = await begin(50)
    const before = await ended("heartbeat")
    const start = performance.now()
    proxy.refuses = true
    proxy.blackhole("up", "down")
    await shared.edge.admin.untilNode("tower", "suspect")
    expect(performance.now() - start).toBeGreaterThan(HEARTBEAT_MS)
    const lost = await shared.edge.admin.untilNode("tower", "offline")
    expect(performance.now() - start).toBeGreaterThan(2 * HEARTBEAT_MS)
    expect(lost.last_disconnect?.reason).toMatch(/heartbeats missed/)
    expect(await ended("heartbeat")).toBe(before + 1)
    await node.line("that the edge is silent", (line) => line.includes("the edge was silent"))
    const end = await stream.finish()
    expect(end.code).toBe("node_lost")
    expect(end.message).toMatch(/did not come back within \d/)
    expect(countText(stream.runId, TOKENS).startsWith(stream.text)).toBe(true)
    expect((await shared.edge.admin.node("tower")).slots_in_use).toBe(0)
    proxy.refuses = false
    const back = await shared.edge.admin.untilNode("tower", "routable", 40_000)
    expect(back.epoch).toBeGreaterThan(epoch)
    // The run is over: the node gives up what it still held of it.
    await node.line("that the run is not wanted", (line) => line.includes("runs were dropped"))
    await expectNoZombie(proxy)
  })
})

describe("an edge whose network fails", () => {
  // Longer than a node may take to redial, however its dice fall.
  const { shared, join, begin, expectWhole, ended, expectNoZombie } = useNetwork("20s")

  it("LK2 a link that loses what the node says is given up by both ends, and the run goes on over the next", async () => {
    const { proxy, node, epoch } = await join()
    const stream = await begin()
    proxy.blackhole("up")
    await node.line("why it lost its link", (line) => line.includes("heard nothing from this node"))
    await expectWhole(stream)
    const back = await shared.edge.admin.untilNode("tower", "routable")
    expect(back.epoch).toBeGreaterThan(epoch)
    expect(back.last_disconnect?.reason).toMatch(/heartbeats missed/)
    await expectNoZombie(proxy)
  })

  it("LK2 a link that loses what the edge says is given up by both ends, and the run goes on over the next", async () => {
    const { proxy, node, epoch } = await join()
    const stream = await begin()
    proxy.blackhole("down")
    await node.line("that the edge is silent", (line) => line.includes("the edge was silent"))
    await expectWhole(stream)
    const back = await shared.edge.admin.untilNode("tower", "routable")
    expect(back.epoch).toBeGreaterThan(epoch)
    await expectNoZombie(proxy)
  })

  it("LK3 a reset shows at once, the run waits in its grace, and the node redials after its first backoff", async () => {
    const { proxy, node, epoch } = await join()
    const stream = await begin()
    const before = await ended("reset")
    proxy.refuses = true
    proxy.cut()
    const lost = await shared.edge.admin.untilNode("tower", "offline", 2_000)
    expect(lost.last_disconnect?.reason).toBe("reset")
    expect(await ended("reset")).toBe(before + 1)
    expect((await shared.edge.admin.run(stream.runId)).phase).toBe("streaming")
    expect(lost.slots_in_use).toBe(1)
    const { nodes } = await shared.edge.admin.explain("mock", "count")
    expect(nodes.find(({ node }) => node === "tower")).toMatchObject({
      reason: "reconnecting",
      message: expect.stringMatching(/link lost \d+ s ago: reset; it may come back/)
    })
    proxy.refuses = false
    await expectWhole(stream)
    const delay = await node.line("when it redials", (line) => /next attempt in ([\d.]+) s/.exec(line)?.[1])
    expect(Number(delay)).toBeLessThanOrEqual(1)
    expect((await shared.edge.admin.node("tower")).epoch).toBeGreaterThan(epoch)
  })

  it("LK4 a cable that is out for less than the dead time costs nothing: same link, no run touched", async () => {
    const { proxy, epoch } = await join()
    const streams = [await begin(), await begin(), await begin()]
    proxy.freeze()
    await shared.edge.admin.untilNode("tower", "suspect")
    proxy.thaw()
    for (const stream of streams) await expectWhole(stream)
    const node = await shared.edge.admin.untilNode("tower", "routable")
    expect(node.epoch).toBe(epoch)
    expect(proxy.connections).toBe(1)
  })

  it("LK5 a node that stands still for a while is suspect and not dead, and goes on where it was", async () => {
    const { proxy, node, epoch } = await join()
    const stream = await begin()
    node.signal("SIGSTOP")
    const suspect = await shared.edge.admin.untilNode("tower", "suspect")
    expect(suspect.reason).toBe("misses heartbeats")
    // A new run waits until the node answers again.
    const waiting = await shared.edge.admin.stream({
      adapter: "mock",
      target: "count",
      prompt: countPrompt(TOKENS)
    })
    await waiting.until("queued")
    const { nodes } = await shared.edge.admin.explain("mock", "count")
    expect(nodes.find(({ node }) => node === "tower")?.reason).toBe("suspect")
    expect(waiting.events.some(({ type }) => type === "dispatched")).toBe(false)
    node.signal("SIGCONT")
    expect((await shared.edge.admin.untilNode("tower", "routable")).epoch).toBe(epoch)
    await expectWhole(stream)
    await expectWhole(waiting)
    expect(proxy.connections).toBe(1)
  })

  it("LK8 a node that comes back from another address goes on with its runs, nothing lost and nothing twice", async () => {
    const { proxy, node, epoch } = await join()
    const streams = [await begin(), await begin(), await begin()]
    proxy.source = "127.0.0.2"
    proxy.blackhole("up", "down")
    await node.line("that its runs go on", (line) => line.includes("runs go on over the new link"))
    const back = await shared.edge.admin.untilNode("tower", "routable")
    expect(back.remote).toMatch(/^127\.0\.0\.2:/)
    expect(back.epoch).toBeGreaterThan(epoch)
    for (const stream of streams) await expectWhole(stream)
    await expectNoZombie(proxy)
  })
})
