// What becomes of a run when its node dies, by how far the run had come: real fake nodes that are killed, frozen or cut
// off, and a second node that may take over.
import { describe, expect, it } from "vitest"
import type { ApiStream } from "./harness/AdminClient.ts"
import { ChaosProxy } from "./harness/ChaosProxy.ts"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { countPrompt, countText } from "./harness/countText.ts"
import { MockNode } from "./harness/MockNode.ts"
import { RawHttp } from "./harness/RawHttp.ts"
import type { RawNode } from "./harness/RawNode.ts"
import { SseParser } from "./harness/SseParser.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually } from "./harness/waiting.ts"

/** Answers of the second node. */
const ELSEWHERE = "answered elsewhere"

describe("an edge that loses a node in the middle of its runs", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower", { slots: 60 }), mockNodeConfig("laptop", { slots: 4 })],
    link: { heartbeat_interval: "400ms", resume_grace: "1500ms" },
    runs: { queue_limit: 100 }
  })

  const join = async (id = "tower", proxy?: ChaosProxy) => {
    const { cleanup, edge } = shared
    const node = new MockNode(cleanup, {
      edge: proxy?.address ?? edge.nodes,
      token: tokenOf(id),
      name: id
    })
    await edge.admin.untilNode(id, "routable")
    return node
  }

  /** The other node, which answers everything at once. */
  const second = async (...targets: ReadonlyArray<string>): Promise<RawNode> => {
    const node = await shared.node("laptop", targets)
    node.onRun = (run) => run.answer(ELSEWHERE)
    return node
  }

  const submit = (target: string, prompt = "x") =>
    shared.edge.admin.stream({ adapter: "mock", target, prompt })

  const record = (stream: ApiStream) => shared.edge.admin.run(stream.runId)
  const slots = async (id: string) => (await shared.edge.admin.node(id)).slots_in_use

  /** One clean answer of the second node, and nothing of the first one's attempt. */
  const expectElsewhere = async (stream: ApiStream) => {
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe(ELSEWHERE)
    expect(stream.events.filter(({ type }) => type === "started").length).toBe(1)
    expect(await record(stream)).toMatchObject({ phase: "completed", attempt: 2, node: "laptop-alias" })
    const dispatched = stream.events.filter(({ type }) => type === "dispatched")
    expect(dispatched.map(({ node, attempt }) => [node, attempt])).toEqual([
      ["tower-alias", 1],
      ["laptop-alias", 2]
    ])
  }

  it("ND1 a node that dies before it has the run costs an attempt: the next node gives the one answer", async () => {
    const proxy = await ChaosProxy.open(shared.cleanup, shared.edge.nodes)
    const tower = await join("tower", proxy)
    proxy.freeze()
    const stream = await submit("echo", "never to be read by the tower")
    await stream.until("dispatched")
    const laptop = await second("echo")
    await tower.kill()
    proxy.cut()
    await expectElsewhere(stream)
    expect(laptop.runs.size).toBe(1)
  })

  it("ND2 a node that dies before it starts the run costs an attempt, and its slot is free at once", async () => {
    const tower = await join()
    const stream = await submit("never")
    await stream.until("dispatched")
    const laptop = await shared.node("laptop", ["never"])
    await tower.kill()
    const run = await laptop.nextRun()
    expect(run.request.attempt).toBe(2)
    expect(await slots("tower")).toBe(0)
    run.answer(ELSEWHERE)
    await expectElsewhere(stream)
  })

  it("ND3 a node that dies before its first delta costs an attempt, and nothing of it reaches the caller", async () => {
    const tower = await join()
    const stream = await submit("never", 'x {"start": true}')
    await shared.edge.admin.untilRun(stream.runId, ["started"])
    await second("never")
    await tower.kill()
    await expectElsewhere(stream)
    expect(await slots("tower")).toBe(0)
  })

  it("ND5 a process that is killed in the middle of an answer ends it with node_lost when the grace is over", async () => {
    const tower = await join()
    const stream = await submit("count", countPrompt(2_000, { interval_ms: 5 }))
    await stream.until("delta")
    await second("count")
    await tower.kill()
    const lost = await shared.edge.admin.untilNode("tower", "offline")
    expect(lost.slots_in_use).toBe(1)
    const end = await stream.finish()
    expect(end).toMatchObject({ type: "failed", code: "node_lost" })
    expect(end.message).toMatch(/tower-alias.*did not come back within/)
    expect(stream.events.at(-1)).toBe(end)
    expect(stream.terminals.length).toBe(1)
    expect(countText(stream.runId, 2_000).startsWith(stream.text)).toBe(true)
    expect(await slots("tower")).toBe(0)
    expect(await record(stream)).toMatchObject({
      phase: "failed",
      attempt: 1,
      failure: { code: "node_lost" },
      slot_held: false
    })
  })

  it("ND6 a hundred runs in all stages resolve once each, by the rule of their stage", async () => {
    const tower = await join()
    const times = async (count: number, target: string, prompt: string) => {
      const streams: Array<ApiStream> = []
      for (let i = 0; i < count; i++) streams.push(await submit(target, prompt))
      return streams
    }
    const dispatched = await times(20, "never", "x")
    const started = await times(20, "never", 'x {"start": true}')
    const streaming = await times(20, "count", countPrompt(2_000, { interval_ms: 10 }))
    const queued = await times(40, "count", "queued")
    await Promise.all([
      ...dispatched.map((stream) => stream.until("dispatched")),
      ...started.map((stream) => shared.edge.admin.untilRun(stream.runId, ["started"])),
      ...streaming.map((stream) => stream.until("delta")),
      ...queued.map((stream) => stream.until("queued"))
    ])
    expect(await slots("tower")).toBe(60)
    const laptop = await shared.node("laptop", ["never", "count"])
    const first = [
      await laptop.nextRun(),
      await laptop.nextRun(),
      await laptop.nextRun(),
      await laptop.nextRun()
    ]
    await tower.kill()
    await shared.edge.admin.untilNode("tower", "offline")
    laptop.onRun = (run) => run.answer(ELSEWHERE)
    for (const run of first) run.answer(ELSEWHERE)
    for (const stream of [...dispatched, ...started]) await expectElsewhere(stream)
    for (const stream of queued) {
      expect((await stream.finish()).type).toBe("completed")
      expect(await record(stream)).toMatchObject({ attempt: 1, node: "laptop-alias" })
    }
    for (const stream of streaming) {
      expect((await stream.finish()).code).toBe("node_lost")
      expect(countText(stream.runId, 2_000).startsWith(stream.text)).toBe(true)
    }
    // The order in which the second node got those that waited is that of their submission.
    const order = [...laptop.runs.values()].map(({ request }) => request.runId)
    const waited = new Set(queued.map(({ runId }) => runId))
    expect(order.filter((id) => waited.has(id))).toEqual(queued.map(({ runId }) => runId))
    expect(order.length).toBe(80)
    expect(await slots("tower")).toBe(0)
    expect(await slots("laptop")).toBe(0)
  })

  it("ND7 a backend that fails before a delta costs an attempt while its node lives", async () => {
    const tower = await join()
    const streams = [
      await submit("fail-first", 'started {"fast": false, "delay_ms": 300}'),
      await submit("fail-first", 'not even started {"delay_ms": 300}')
    ]
    await second("fail-first")
    for (const stream of streams) await expectElsewhere(stream)
    expect(tower.exit).toBeUndefined()
    expect((await shared.edge.admin.node("tower")).state).toBe("routable")
  })

  it("ND7 one that fails after a delta ends the run with adapter_error, wherever else it could run", async () => {
    await join()
    const stream = await submit("fail-mid", 'x {"tokens": 3, "interval_ms": 20}')
    await second("fail-mid")
    const end = await stream.finish()
    expect(end).toMatchObject({ type: "failed", code: "adapter_error" })
    expect(end.message).toMatch(/tower-alias: the script fails after 3 deltas/)
    expect(stream.text).toBe("1 2 3 ")
    expect(stream.events.at(-1)).toBe(end)
    expect((await shared.edge.admin.node("tower")).state).toBe("routable")
  })

  describe("ND8 what people see of a node that is gone", () => {
    const expectNamed = async (since: number, reason: RegExp) => {
      const node = await shared.edge.admin.untilNode("tower", "offline")
      expect(node.last_disconnect?.reason).toMatch(reason)
      expect(node.reason).toMatch(reason)
      const at = Date.parse(node.last_disconnect?.time ?? "")
      expect(at).toBeGreaterThanOrEqual(since)
      expect(at).toBeLessThanOrEqual(Date.now())
      const { nodes } = await shared.edge.admin.explain("mock", "echo")
      const verdict = nodes.find(({ node }) => node === "tower")
      expect(verdict?.chosen).toBe(false)
      expect(verdict?.message).toMatch(reason)
      expect((await shared.edge.admin.nodes()).find(({ id }) => id === "tower")?.last_disconnect).toEqual(
        node.last_disconnect
      )
      await shared.edge.logged(
        "node link ended",
        ({ fields }) => fields.node === "tower" && reason.test(String(fields.reason))
      )
    }

    it("ND8 a reset", async () => {
      const node = await shared.node("tower")
      const since = Date.now()
      node.reset()
      await expectNamed(since, /\breset\b/)
    })

    it("ND8 a process that was killed", async () => {
      const node = await join()
      const since = Date.now()
      await node.kill()
      await expectNamed(since, /closed by the node|reset/)
    })

    it("ND8 missed heartbeats", async () => {
      const node = await join()
      const since = Date.now()
      node.signal("SIGSTOP")
      await expectNamed(since, /heartbeats missed for \d+ s/)
    })

    it("ND8 a node that was stopped by its own people", async () => {
      const node = await join()
      const since = Date.now()
      node.signal("SIGTERM")
      await expectNamed(since, /the node stopped/)
    })

    it("ND8 a process that was replaced by another", async () => {
      const frozen = await join()
      frozen.signal("SIGSTOP")
      const newcomer = await shared.node("tower")
      const node = await shared.edge.admin.untilNode("tower", "routable")
      expect(node.last_disconnect?.reason).toMatch(/another one with the same token|heartbeats missed/)
      await eventually("the newcomer to be the tower", async () =>
        (await shared.edge.admin.node("tower")).remote?.endsWith(`:${newcomer.localPort}`)
      )
    })
  })
})

describe("an edge that loses a link in the middle of a run", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop")],
    // Longer than a node may take to redial, however its dice fall.
    link: { heartbeat_interval: "400ms", resume_grace: "20s" },
    http: { sse_comment: "50ms" }
  })

  it("ND4 a link that is cut in the middle of an answer leaves it unbroken, with comments meanwhile", async () => {
    const proxy = await ChaosProxy.open(shared.cleanup, shared.edge.nodes)
    new MockNode(shared.cleanup, { edge: proxy.address, token: tokenOf("tower"), name: "tower" })
    await shared.edge.admin.untilNode("tower", "routable")
    const tokens = 300
    const http = await RawHttp.open(shared.cleanup, shared.edge.http)
    http.request("POST", "/admin/v1/runs?events=true", {
      adapter: "mock",
      target: "count",
      prompt: countPrompt(tokens, { interval_ms: 5 })
    })
    const head = await http.head()
    const runId = head.headers["x-iop-run-id"] ?? ""
    const parser = new SseParser()
    const read = async () => {
      const chunk = await http.chunk()
      if (chunk !== undefined) parser.push(chunk)
      return chunk !== undefined
    }
    const deltas = () =>
      parser.events
        .map(({ data }) => JSON.parse(data) as { type: string; text?: string; node?: string })
        .filter(({ type }) => type === "delta")
    while (deltas().length < 10) await read()
    const laptop = await shared.node("laptop", ["count"])
    proxy.refuses = true
    proxy.cut()
    await shared.edge.admin.untilNode("tower", "offline")
    const comments = parser.comments
    while (parser.comments < comments + 3) await read()
    proxy.refuses = false
    while (await read()) {
      // Until the stream has ended in order.
    }
    expect(
      deltas()
        .map(({ text }) => text)
        .join("")
    ).toBe(countText(runId, tokens))
    expect(JSON.parse(parser.events.at(-1)?.data ?? "")).toMatchObject({ type: "completed" })
    expect(laptop.runs.size).toBe(0)
    expect(await shared.edge.admin.run(runId)).toMatchObject({ attempt: 1, node: "tower-alias" })
  })
})
