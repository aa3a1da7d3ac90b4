// The node that was written from proto/README.md alone, against the real edge: what works here is what the page says.

import { makeTestCertificates } from "@iop/proto-socket/testing/certificates"
import { Effect } from "effect"
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { ChaosProxy } from "../../../apps/edge/e2e/harness/ChaosProxy.ts"
import { type ConfigSection, mockNodeConfig, tokenOf } from "../../../apps/edge/e2e/harness/config.ts"
import { EdgeProcess } from "../../../apps/edge/e2e/harness/EdgeProcess.ts"
import type { Address } from "../../../apps/edge/e2e/harness/RawHttp.ts"
import { eventually } from "../../../apps/edge/e2e/harness/waiting.ts"
import { PythonNode, requirePython } from "./PythonNode.ts"

const snake = mockNodeConfig("snake", {
  adapters: [
    { name: "mock", type: "mock", slots: 4 },
    { name: "tally", type: "custom", kind: "wordcount", slots: 1, settings: { separator: "," } },
    { name: "other", type: "custom", kind: "from-elsewhere", slots: 1 }
  ]
})

const countTo = (n: number): string => Array.from({ length: n }, (_, i) => `${i + 1} `).join("")

/** Larger than any test waits for: such a run ends because it is stopped. */
const WITHOUT_END = "999999999"

let cleanup = new AsyncDisposableStack()
beforeAll(requirePython)
beforeEach(() => {
  cleanup = new AsyncDisposableStack()
})
afterEach(() => cleanup.disposeAsync())

/** The edge with this node in its configuration. */
const startEdge = (sections: { link?: ConfigSection; port?: number; tls?: ConfigSection } = {}) =>
  EdgeProcess.start(cleanup, {
    nodes: [snake],
    listen: { nodes: { port: sections.port ?? 0, ...(sections.tls && { tls: sections.tls }) } },
    link: { resume_grace: "20s", ...sections.link },
    runs: { cancel_timeout: "5s" }
  })

const startNode = async (edge: EdgeProcess, dial: Address = edge.nodes) => {
  const node = new PythonNode(cleanup, { edge: dial, token: tokenOf("snake") })
  await edge.admin.untilNode("snake", "routable")
  return node
}

const count = (prompt: string) => ({ adapter: "mock", target: "count", prompt, stream: true })

describe("a node in Python", () => {
  it("registers, becomes routable, and says which adapters work", async () => {
    const edge = await startEdge()
    await startNode(edge)
    const { agent, adapters } = await edge.admin.node("snake")
    expect(agent).toContain("python-node")
    expect(Object.fromEntries(adapters.map(({ name, state }) => [name, state]))).toEqual({
      mock: "ready",
      tally: "ready",
      other: "unavailable"
    })
  })

  it.each([true, false])("gives text back byte for byte, streamed %s", async (stream) => {
    const edge = await startEdge()
    await startNode(edge)
    const prompt = "안녕하세요, 세계! 각 👩‍👩‍👧‍👦 👍🏽  é\u0000 \t\n끝 "
    const run = await edge.admin.stream({ adapter: "mock", target: "echo", prompt, stream })
    expect((await run.finish()).type).toBe("completed")
    expect(Buffer.from(run.text)).toEqual(Buffer.from(prompt))
    const deltas = run.events.filter(({ type }) => type === "delta")
    if (stream) expect(deltas.length).toBeGreaterThan(1)
    else expect(deltas).toHaveLength(1)
  })

  it("gives a text of 3 MiB back that is larger than a frame and than the window", async () => {
    const edge = await startEdge()
    await startNode(edge)
    const prompt = "가나다👩‍👩‍👧‍👦".repeat(90_000)
    expect(Buffer.byteLength(prompt)).toBeGreaterThan(3_000_000)
    const run = await edge.admin.stream({ adapter: "mock", target: "echo", prompt, stream: false })
    expect((await run.finish()).type).toBe("completed")
    expect(run.text === prompt).toBe(true)
  })

  it("runs adapters of a kind of its own with their settings", async () => {
    const edge = await startEdge()
    await startNode(edge)
    const run = await edge.admin.stream({ adapter: "tally", target: "words", prompt: "하나,둘,three" })
    expect((await run.finish()).type).toBe("completed")
    expect(run.text).toBe("3")
  })

  it("refuses an input that a target cannot work on", async () => {
    const edge = await startEdge()
    await startNode(edge)
    const run = await edge.admin.stream(count("no number"))
    expect(await run.finish()).toMatchObject({ type: "failed", message: expect.stringContaining("number") })
  })

  it("keeps 5,000 events in order through a small window, while another run and the heartbeat go on", async () => {
    const edge = await startEdge({ link: { run_window: "4KiB", heartbeat_interval: "200ms" } })
    await startNode(edge)
    const long = await edge.admin.stream(count("5000"))
    await long.until("delta")
    const short = await edge.admin.stream(count("3"))
    expect((await short.finish()).type).toBe("completed")
    expect(short.text).toBe("1 2 3 ")
    expect((await long.finish()).type).toBe("completed")
    expect(long.text).toBe(countTo(5_000))
  })

  it("stops a run that is cancelled in the middle, and gives back its slot", async () => {
    const edge = await startEdge()
    await startNode(edge)
    const run = await edge.admin.stream(count(WITHOUT_END))
    await run.until("delta")
    await edge.admin.cancel(run.runId)
    expect((await run.finish()).type).toBe("cancelled")
    await edge.untilMetrics("all slots back", (metrics) => metrics.sum("iop_edge_slots_in_use") === 0)
    const next = await edge.admin.stream(count("2"))
    expect((await next.finish()).type).toBe("completed")
  })

  it("goes on in the same text when its link is cut in mid-stream: nothing lost, nothing twice", async () => {
    const edge = await startEdge({ link: { run_window: "4KiB" } })
    const proxy = await ChaosProxy.open(cleanup, edge.nodes)
    const node = await startNode(edge, proxy.address)
    // Slow enough that the cuts fall into the run, however fast the machine is.
    Object.assign(proxy.weather.up, { slice: 512, delayMs: 5 })
    const run = await edge.admin.stream(count("3000"))
    for (const progress of [200, 700]) {
      await eventually(`${progress} events`, () => run.events.length > progress)
      const { length } = node.lines(/^resuming run/)
      proxy.cut()
      await eventually("the node to resume the run", () => node.lines(/^resuming run/).length > length)
    }
    Object.assign(proxy.weather.up, { slice: 0, delayMs: 0 })
    expect(await run.finish()).toMatchObject({ type: "completed" })
    expect(run.text).toBe(countTo(3_000))
    expect((await edge.admin.run(run.runId)).attempt).toBe(1)
  })

  it("notices an edge that has gone silent, and comes back by itself", async () => {
    const edge = await startEdge({ link: { heartbeat_interval: "200ms" } })
    const proxy = await ChaosProxy.open(cleanup, edge.nodes)
    const node = await startNode(edge, proxy.address)
    proxy.lose("up", "down")
    await node.said(/the edge was silent for 0\.6 s/)
    proxy.thaw()
    await eventually("a second link", () => node.lines(/^registered as snake/).length > 1)
    await edge.admin.untilNode("snake", "routable")
  })

  it("comes back to an edge that was started again", async () => {
    const first = await startEdge()
    const node = await startNode(first)
    await first.stop("SIGTERM")
    await node.said(/the edge (ended the link|drains this node)/)
    const second = await startEdge({ port: first.nodes.port })
    await second.admin.untilNode("snake", "routable")
    const run = await second.admin.stream(count("2"))
    expect((await run.finish()).type).toBe("completed")
    expect(node.exit).toBeUndefined()
  })

  it("does not disturb the process that already uses its token, and takes its place once that is gone", async () => {
    const edge = await startEdge()
    const first = await startNode(edge)
    const second = new PythonNode(cleanup, { edge: edge.nodes, token: tokenOf("snake") })
    await second.said(/rejected this node: node snake is connected from .+; dialling again/)
    await first.stop("SIGTERM")
    await second.said(/^registered as snake/)
    expect(first.lines(/^registered as snake/)).toHaveLength(1)
  })

  it("dials with TLS, and tells an edge that it cannot verify nothing", () =>
    Effect.gen(function* () {
      const { caFile, server } = yield* makeTestCertificates
      yield* Effect.promise(async () => {
        const edge = await startEdge({ tls: { cert_file: server.certFile, key_file: server.keyFile } })
        const dial = { edge: edge.nodes, token: tokenOf("snake") }
        const careful = new PythonNode(cleanup, { ...dial, args: ["--tls"] })
        await careful.said(/cannot reach the edge .*CERTIFICATE_VERIFY_FAILED/i)
        const node = new PythonNode(cleanup, { ...dial, args: ["--ca", caFile] })
        await edge.admin.untilNode("snake", "routable")
        const run = await edge.admin.stream(count("2"))
        expect((await run.finish()).type).toBe("completed")
        expect(await node.stop("SIGTERM")).toMatchObject({ code: 0 })
      })
    }).pipe(Effect.scoped, Effect.runPromise))

  it("shows why it was rejected, and goes on trying", async () => {
    const edge = await startEdge()
    const node = new PythonNode(cleanup, { edge: edge.nodes, token: "a-token-of-nobody-0123456789" })
    await node.said(/rejected this node: .+; dialling again in (3|4|5)\d\.\d s/)
    expect(node.exit).toBeUndefined()
    expect(node.stderr.join()).not.toContain("a-token-of-nobody")
  })

  it("says goodbye and exits with 0 at SIGTERM, after its runs have ended", async () => {
    const edge = await startEdge()
    const node = await startNode(edge)
    const run = await edge.admin.stream(count("20000"))
    await run.until("delta")
    const exit = await node.stop("SIGTERM")
    expect(exit).toMatchObject({ code: 0, signal: undefined })
    expect((await run.finish()).type).toBe("completed")
    expect(run.text).toBe(countTo(20_000))
    const { last_disconnect } = await edge.admin.untilNode("snake", "offline")
    expect(last_disconnect?.reason).toContain("asked to stop")
  })

  it("ends a run that outlasts its drain timeout, as a failure that another node may repair", async () => {
    const edge = await EdgeProcess.start(cleanup, {
      nodes: [{ ...snake, runtime: { drain_timeout: "200ms" } }]
    })
    const node = await startNode(edge)
    const run = await edge.admin.stream(count(WITHOUT_END))
    await run.until("delta")
    const exit = await node.stop("SIGTERM")
    expect(exit).toMatchObject({ code: 0, signal: undefined })
    expect(await run.finish()).toMatchObject({ type: "failed", message: expect.stringContaining("stopped") })
  })
})
