// What becomes of runs when the process of their node dies, is replaced, or loses its link: real fake nodes, killed.
import { describe, expect, it } from "vitest"
import { ChaosProxy } from "./harness/ChaosProxy.ts"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { MockNode } from "./harness/MockNode.ts"
import { RawNode } from "./harness/RawNode.ts"
import { useEdge } from "./harness/useEdge.ts"

describe("an edge with two nodes", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower", { slots: 1 }), mockNodeConfig("laptop", { slots: 1 })],
    link: { heartbeat_interval: "500ms", resume_grace: "1s" }
  })

  const startNode = async (id: string) => {
    const node = new MockNode(shared.cleanup, { edge: shared.edge.nodes, token: tokenOf(id), name: id })
    await shared.edge.admin.untilNode(id, "routable")
    return node
  }
  const submit = (prompt: string) => shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt })

  it("ND2 a run that waits at a killed node moves to the other", async () => {
    const nodes = new Map([
      ["tower-alias", await startNode("tower")],
      ["laptop-alias", await startNode("laptop")]
    ])
    const stream = await submit('a waiting run {"delay_ms": 2000}')
    const first = (await stream.until("dispatched")).node ?? ""
    await nodes.get(first)?.kill()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("a waiting run")
    const other = [...nodes.keys()].find((alias) => alias !== first)
    const record = await shared.edge.admin.run(stream.runId)
    expect(record).toMatchObject({ node: other, attempt: 2, phase: "completed" })
    const { last_disconnect } = await shared.edge.admin.node(first)
    expect(last_disconnect?.reason).toMatch(/reset|closed/)
  })

  it("ND5 a run that has begun to answer ends node_lost, at once when the node comes back as a new process", async () => {
    const tower = await startNode("tower")
    const stream = await submit('letters that never come to their end {"interval_ms": 100, "size": 1}')
    await stream.until("delta")
    await tower.kill()
    await startNode("tower")
    const end = await stream.finish()
    expect(end.code).toBe("node_lost")
    expect((await shared.edge.admin.node("tower")).slots_in_use).toBe(0)
  })

  it("ND5 and when the grace is over if nobody comes", async () => {
    const tower = await startNode("tower")
    const stream = await submit('letters that never come to their end {"interval_ms": 100, "size": 1}')
    await stream.until("delta")
    await tower.kill()
    const end = await stream.finish()
    expect(end.code).toBe("node_lost")
    expect(end.message).toContain("tower-alias")
  })

  it("ND4 a cut link in the middle of an answer is one unbroken answer, whole", async () => {
    const proxy = await ChaosProxy.open(shared.cleanup, shared.edge.nodes)
    new MockNode(shared.cleanup, { edge: proxy.address, token: tokenOf("tower") })
    await shared.edge.admin.untilNode("tower", "routable")
    const text = "an answer that is cut off again and again on its way and still whole ".repeat(2).trim()
    const stream = await submit(`${text} {"interval_ms": 20, "size": 2}`)
    await stream.until("delta")
    const before = (await shared.edge.admin.node("tower")).epoch ?? 0
    proxy.cut()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe(text)
    const after = (await shared.edge.admin.untilNode("tower", "routable")).epoch ?? 0
    expect(after).toBeGreaterThan(before)
    expect(stream.events.filter(({ type }) => type === "dispatched").length).toBe(1)
  })

  it("LK1 a link that carries nothing any more is noticed on both sides, and the node comes back by itself", async () => {
    const proxy = await ChaosProxy.open(shared.cleanup, shared.edge.nodes)
    const node = new MockNode(shared.cleanup, { edge: proxy.address, token: tokenOf("tower") })
    const first = await shared.edge.admin.untilNode("tower", "routable")
    proxy.lose("up", "down")
    const lost = await shared.edge.admin.untilNode("tower", "offline")
    expect(lost.last_disconnect?.reason).toMatch(/heartbeats missed/)
    await node.line("that the edge is silent", (line) => line.includes("silent"))
    proxy.thaw()
    const back = await shared.edge.admin.untilNode("tower", "routable", 40_000)
    expect(back.epoch ?? 0).toBeGreaterThan(first.epoch ?? 0)
  })

  it("LK8 a node that comes back from another address goes on with its run", async () => {
    const proxy = await ChaosProxy.open(shared.cleanup, shared.edge.nodes)
    const token = tokenOf("tower")
    const bootId = Buffer.alloc(16, 8)
    const offers = { mock: ["echo"] }
    const old = await shared.edge.node(shared.cleanup, { id: "tower", token, bootId, offers })
    const stream = await submit("x")
    const run = await old.nextRun()
    run.started().delta("here ")
    await stream.until("delta")
    // The old path is not closed, it just leads nowhere.
    old.answersPings = false
    const moved = await RawNode.connect(shared.cleanup, proxy.address)
    const { result } = await moved.handshake({ token, bootId, heldRuns: [run.held] })
    const decision = result.case === "accepted" ? result.value.heldRuns[0]?.decision : undefined
    if (decision?.case !== "resume") throw new Error("the run was not resumed")
    moved.resumeRun(run, decision.value.handle, decision.value.afterSeq)
    run.delta("and there").completed()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("here and there")
  })

  it("a stopped node says goodbye, finishes its run and gets no new one", async () => {
    const tower = await startNode("tower")
    const stream = await submit('finished after all {"interval_ms": 30, "size": 2}')
    await stream.until("delta")
    const stopped = tower.stop("SIGTERM")
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("finished after all")
    expect((await stopped).code).toBe(0)
    const { last_disconnect } = await shared.edge.admin.untilNode("tower", "offline")
    expect(last_disconnect?.reason).toMatch(/stopped/)
  })
})
