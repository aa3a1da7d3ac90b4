// What an edge does where the machine has not enough for all that come: descriptors, connections by the thousand, memory.
import { connect } from "node:net"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { ApiRefusal } from "./harness/AdminClient.ts"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { MockNode } from "./harness/MockNode.ts"
import { openDescriptors } from "./harness/processFigures.ts"
import { type Address, RawHttp } from "./harness/RawHttp.ts"
import { RawNode } from "./harness/RawNode.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually, inParallel } from "./harness/waiting.ts"

/** The figures of the fault list with IOP_E2E_FULL=1, about a tenth of them otherwise. */
const full = process.env.IOP_E2E_FULL === "1"
const MB = 1024 * 1024
const submission = { adapter: "mock", target: "echo", prompt: "x" }

let cleanup: AsyncDisposableStack

beforeEach(() => {
  cleanup = new AsyncDisposableStack()
})

afterEach(() => cleanup.disposeAsync())

describe("an edge with few descriptors", () => {
  it("RS1 refuses what it has no descriptors for, tells it, keeps what it has, and recovers", async () => {
    const edge = await EdgeProcess.start(
      cleanup,
      { nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop")], link: { register_timeout: "30s" } },
      { descriptors: 256 }
    )
    const node = await edge.node(cleanup, {
      id: "tower",
      token: tokenOf("tower"),
      offers: { mock: ["echo"] }
    })
    const stream = await edge.admin.stream(submission)
    const run = await node.nextRun()
    run.started().delta("kept ")
    await stream.until("delta")
    const atFirst = openDescriptors(edge.pid)
    await using crowd = new AsyncDisposableStack()
    await inParallel(Array.from({ length: 300 }), 20, () => RawNode.connect(crowd, edge.nodes))
    await inParallel(Array.from({ length: 300 }), 20, () => RawHttp.open(crowd, edge.http))
    const metrics = await edge.untilMetrics(
      "refused connections",
      (seen) =>
        seen.count("iop_edge_link_connections_refused_total", { reason: "connection_limit" }) > 50 &&
        seen.count("iop_edge_http_connections_refused_total", { listener: "http" }) > 50
    )
    expect(metrics.count("iop_edge_http_connections_refused_total", { listener: "ops" })).toBe(0)
    await edge.logged("too many connections of nodes, a new one is dropped")
    await edge.logged("too many connections, a new one is closed")
    expect(openDescriptors(edge.pid)).toBeLessThan(256)
    // What was there goes on.
    run.delta("all the time").completed()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("kept all the time")
    expect(node.end).toBeUndefined()
    await crowd.disposeAsync()
    await eventually("its descriptors to come back", () => openDescriptors(edge.pid) <= atFirst + 2)
    const late = await edge.node(cleanup, {
      id: "laptop",
      token: tokenOf("laptop"),
      offers: { mock: ["echo"] }
    })
    node.onRun = late.onRun = (fresh) => fresh.answer("recovered")
    const fresh = await edge.admin.stream(submission)
    await fresh.finish()
    expect(fresh.text).toBe("recovered")
    expect(edge.stderr.filter((line) => /EMFILE|unhandled|uncaught/i.test(line))).toEqual([])
  })

  it("RS2 warns at its start, with both numbers, when the nodes of the configuration need more", async () => {
    const nodes = Array.from({ length: 200 }, (_, i) => mockNodeConfig(`node-${i}`))
    const edge = await EdgeProcess.start(cleanup, { nodes }, { descriptors: 256 })
    const warning = await edge.line("a warning", (line) => (line.startsWith("warning: ") ? line : undefined))
    expect(warning).toContain("200 nodes")
    expect(warning).toContain("256 files")
    expect(warning).toContain("ulimit -n")
    const enough = await EdgeProcess.start(cleanup, { nodes: nodes.slice(0, 20) }, { descriptors: 256 })
    expect(enough.stderr.filter((line) => line.startsWith("warning: "))).toEqual([])
  })
})

describe("an edge that is called by the thousand", () => {
  const shared = useEdge({ nodes: [mockNodeConfig("tower")] })

  /** Connects and ends each connection at once, as fast as the machine lets, so many in all. */
  const storm = async (address: Address, count: number, reset: boolean) => {
    const start = performance.now()
    await inParallel(
      Array.from({ length: count }),
      100,
      () =>
        new Promise<void>((resolve) => {
          const socket = connect(address)
          socket.on("error", () => undefined)
          socket.once("close", () => resolve())
          socket.once("connect", () => {
            if (reset) socket.resetAndDestroy()
            else socket.destroy()
          })
        })
    )
    return count / ((performance.now() - start) / 1000)
  }

  const health = async (over: Promise<unknown>): Promise<number> => {
    let going = true
    void over.finally(() => {
      going = false
    })
    const times: Array<number> = []
    while (going) {
      const start = performance.now()
      expect(await shared.edge.admin.status("/healthz")).toBe(200)
      times.push(performance.now() - start)
    }
    times.sort((a, b) => a - b)
    return times[Math.floor(times.length * 0.99)] ?? 0
  }

  it.each([
    ["RS3", "and close", full ? 100_000 : 6_000, false],
    ["RS4", "and reset right after the accept", full ? 100_000 : 5_000, true]
  ] as const)("%s connects %s leave nothing behind and disturb nobody", async (name, _, count, reset) => {
    const { edge } = shared
    const node = await shared.node("tower")
    const stream = await edge.admin.stream(submission)
    const run = await node.nextRun()
    run.started()
    const descriptors = openDescriptors(edge.pid)
    // What a first storm leaves in caches is no leak.
    for (const address of [edge.nodes, edge.http]) await storm(address, 500, reset)
    await eventually("its descriptors to come back", () => openDescriptors(edge.pid) <= descriptors + 2)
    const memory = edge.memory
    const storms = (async () => {
      const rates: Array<number> = []
      for (const address of [edge.nodes, edge.http]) rates.push(await storm(address, count / 2, reset))
      return rates
    })()
    const p99 = await health(storms)
    const rates = await storms
    await eventually("its descriptors to come back", () => openDescriptors(edge.pid) <= descriptors + 2)
    console.log(
      `${name} ${count} connects at ${rates.map((rate) => Math.round(rate)).join(" and ")} a second, ` +
        `p99 of /healthz ${Math.round(p99)} ms, memory ${Math.round((edge.memory - memory) / MB)} MB more`
    )
    // The promise is 250 ms; those who call share the machine.
    expect(p99).toBeLessThan(5_000)
    expect(edge.memory - memory).toBeLessThan(64 * MB)
    expect(node.end).toBeUndefined()
    run.delta("undisturbed").completed()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("undisturbed")
    expect(edge.stderr.filter((line) => /ECONNRESET|EPIPE|unhandled/i.test(line))).toEqual([])
  })
})

describe("an edge with little memory", () => {
  it("RS6 serves five hundred runs in a heap of 256 MB and refuses more with 503 before it is in trouble", async () => {
    const edge = await EdgeProcess.start(
      cleanup,
      { nodes: [mockNodeConfig("tower", { slots: 500 })], runs: { queue_limit: 50 } },
      { env: { NODE_OPTIONS: "--max-old-space-size=256" } }
    )
    const node = await edge.node(cleanup, {
      id: "tower",
      token: tokenOf("tower"),
      offers: { mock: ["echo"] }
    })
    const piece = "x".repeat(16 * 1024)
    const pieces = full ? 200 : 20
    node.onRun = (run) => run.started().delta("first")
    const streams = await inParallel(Array.from({ length: 500 }), 50, () => edge.admin.stream(submission))
    await eventually("every run to have begun", () => node.runs.size === 500)
    const waiting = await inParallel(Array.from({ length: 50 }), 50, () => edge.admin.stream(submission))
    const refusals = await inParallel(Array.from({ length: 200 }), 50, async () => {
      const error: unknown = await edge.admin.stream(submission).then(
        () => undefined,
        (reason: unknown) => reason
      )
      return error instanceof ApiRefusal ? error.problem : undefined
    })
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({ status: 503, code: "queue_full" })
      expect(Number(refusal?.retryAfter)).toBeGreaterThan(0)
    }
    const begun = [...node.runs.values()]
    node.onRun = (run) => run.answer("served late")
    for (const run of begun) run.answerRest(Array.from({ length: pieces }, () => piece))
    await inParallel(streams, streams.length, async (stream) => {
      expect((await stream.finish()).type).toBe("completed")
      expect(stream.text.length).toBe("first".length + pieces * piece.length)
    })
    await inParallel(waiting, waiting.length, async (stream) => {
      expect((await stream.finish()).type).toBe("completed")
      expect(stream.text).toBe("served late")
    })
    console.log(
      `RS6 memory after ${(500 * pieces * piece.length) / MB} MB of answers: ${Math.round(edge.memory / MB)} MB`
    )
    expect(edge.exit).toBeUndefined()
    expect(await edge.admin.status("/healthz")).toBe(200)
    expect(edge.stderr.filter((line) => /heap|unhandled|uncaught/i.test(line))).toEqual([])
  })

  it("RS6 survives readers who all stop, in a heap of 96 MB", async () => {
    const READERS = 150
    const edge = await EdgeProcess.start(
      cleanup,
      { nodes: [mockNodeConfig("tower", { slots: READERS })] },
      { env: { NODE_OPTIONS: "--max-old-space-size=96" } }
    )
    new MockNode(cleanup, { edge: edge.nodes, token: tokenOf("tower"), name: "tower" })
    await edge.admin.untilNode("tower", "routable")
    const body = JSON.stringify({
      adapter: "mock",
      target: "flood",
      prompt: `{"tokens": 10000000, "size": 5}`
    })
    for (let i = 0; i < READERS; i++) {
      const reader = connect({ ...edge.http, noDelay: true })
      cleanup.defer(() => void reader.destroy())
      reader.on("error", () => {})
      reader.write(
        `POST /admin/v1/runs?events=true HTTP/1.1\r\nHost: 127.0.0.1:${edge.http.port}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      )
    }
    let events = -1
    await eventually(
      "every run to wait for its reader",
      async () => {
        const metrics = await edge.metrics()
        const now = metrics.count("iop_edge_link_frames_total", { direction: "in" })
        const still = now > READERS * 10_000 && now - events < 100
        events = now
        return still
      },
      60_000
    )
    console.log(
      `RS6 memory with ${READERS} stopped readers, ${events} events: ${Math.round(edge.memory / MB)} MB`
    )
    expect(edge.exit).toBeUndefined()
    expect(await edge.admin.status("/healthz")).toBe(200)
    expect(edge.stderr.filter((line) => /heap|unhandled|uncaught/i.test(line))).toEqual([])
  })
})
