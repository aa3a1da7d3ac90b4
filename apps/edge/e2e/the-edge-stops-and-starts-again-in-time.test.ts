// The life of an edge as a process: how it ends, what it owes to those who are there then, and how it comes back.
import { createServer } from "node:net"
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { CancelCode } from "@iop/platform-common/gen/iop/v1/run_pb"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { ApiRefusal } from "./harness/AdminClient.ts"
import { configText, mockNodeConfig, type TestConfig, tokenOf } from "./harness/config.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { MockNode } from "./harness/MockNode.ts"
import { RawHttp } from "./harness/RawHttp.ts"
import { RawNode } from "./harness/RawNode.ts"
import { runCommand } from "./harness/runCommand.ts"
import { TempFolder } from "./harness/TempFolder.ts"
import { eventually, inParallel, within } from "./harness/waiting.ts"

let cleanup: AsyncDisposableStack

beforeEach(() => {
  cleanup = new AsyncDisposableStack()
})

afterEach(() => cleanup.disposeAsync())

const submission = { adapter: "mock", target: "echo", prompt: "x" }
const tower = { id: "tower", token: tokenOf("tower"), offers: { mock: ["echo"] } }
const config: TestConfig = {
  nodes: [mockNodeConfig("tower")],
  edge: { drain_timeout: "3s" },
  link: { heartbeat_interval: "250ms", resume_grace: "5s" }
}
const start = (more: TestConfig = {}) => EdgeProcess.start(cleanup, { ...config, ...more })

/** The same ports again, for an edge that takes another's place. */
const samePorts = (edge: EdgeProcess): TestConfig => ({
  listen: { nodes: { port: edge.nodes.port }, http: { port: edge.http.port }, ops: { port: edge.ops.port } }
})

/** No word of an error in what an edge said at its end. */
const expectQuietEnd = (edge: EdgeProcess) =>
  expect(
    edge.stderr.filter((line) => /internal error|unhandled|uncaught|"level":"ERROR"/i.test(line))
  ).toEqual([])

describe("an edge that is told to stop", () => {
  it("ED1 ends with 0 at once when nothing runs, with many idle nodes and open connections", async () => {
    const ids = Array.from({ length: 1000 }, (_, i) => `node-${i}`)
    const edge = await start({ nodes: ids.map((id) => mockNodeConfig(id)) })
    const nodes = await inParallel(ids, 30, (id) =>
      RawNode.register(cleanup, edge.nodes, { token: tokenOf(id), offers: { mock: ["echo"] } })
    )
    await eventually("all nodes to be routable", async () =>
      (await edge.admin.nodes()).every(({ state }) => state === "routable")
    )
    const idle = await RawHttp.open(cleanup, edge.http)
    const unregistered = await RawNode.connect(cleanup, edge.nodes)
    const { code, ms } = await edge.stop("SIGTERM")
    expect(code).toBe(0)
    console.log(`ED1 the edge ended after ${Math.round(ms)} ms with ${ids.length} nodes`)
    // A second is the promise; a busy machine gets more, the drain clock not.
    expect(ms).toBeLessThan(15_000)
    const ends = await Promise.all(nodes.map((node) => node.take("goodbye")))
    expect(new Set(ends.map((goodbye) => goodbye.code))).toEqual(new Set([GoodbyeCode.SHUTDOWN]))
    await within("the end of the idle connections", Promise.all([idle.closed, unregistered.closed]))
    expectQuietEnd(edge)
  })

  it("ED1 ends with 0 although a peer reads nothing", async () => {
    const edge = await start()
    const node = await edge.node(cleanup, tower)
    node.socket.pause()
    const { code, ms } = await edge.stop("SIGTERM")
    expect(code).toBe(0)
    expect(ms).toBeLessThan(10_000)
  })

  it("ED2 refuses new runs, tells the nodes, lets runs finish and ends the rest with draining; ED5 heartbeats go on", async () => {
    const edge = await start()
    const node = await edge.node(cleanup, tower)
    const fast = await edge.admin.stream(submission)
    const fastRun = await node.nextRun()
    const slow = await edge.admin.stream(submission)
    const slowRun = await node.nextRun()
    for (const run of [fastRun, slowRun]) run.started().delta("some ")
    await Promise.all([fast.until("delta"), slow.until("delta")])
    const pings = node.pings
    const stopped = edge.stop("SIGTERM")
    expect((await node.take("drain")).timeoutMs).toBeGreaterThan(0)
    await eventually("readyz to say no", async () => (await edge.admin.status("/readyz")) === 503)
    expect(await edge.admin.status("/healthz")).toBe(200)
    const refusal = await edge.admin.stream(submission).then(
      () => undefined,
      (error: unknown) => error
    )
    if (!(refusal instanceof ApiRefusal)) throw new Error("a draining edge accepted a run")
    expect(refusal.problem).toMatchObject({ status: 503, code: "draining" })
    expect(Number(refusal.problem.retryAfter)).toBeGreaterThanOrEqual(1)
    // RG12: whoever registers now is told to come back.
    const late = await RawNode.connect(cleanup, edge.nodes)
    const { result } = await late.handshake({ token: tokenOf("tower") })
    if (result.case !== "rejected") throw new Error("a draining edge accepted a node")
    expect(result.value).toMatchObject({ code: RejectCode.DRAINING, retryable: true })
    expect(result.value.retryAfterMs).toBeGreaterThan(0)
    fastRun.delta("more").completed()
    expect((await fast.finish()).type).toBe("completed")
    expect(fast.text).toBe("some more")
    slowRun.onCancel = () => slowRun.stopped()
    expect((await slow.finish()).code).toBe("draining")
    expect((await slowRun.untilCancelled()).code).toBe(CancelCode.DRAINING)
    expect(node.pings).toBeGreaterThan(pings + 2)
    const { code, ms } = await stopped
    expect(code).toBe(0)
    expect(ms).toBeGreaterThan(2_900)
    expect(ms).toBeLessThan(10_000)
    expect((await node.take("goodbye")).code).toBe(GoodbyeCode.SHUTDOWN)
    expectQuietEnd(edge)
  })

  it("ED2 ends as soon as the last run is over", async () => {
    const edge = await start({ edge: { drain_timeout: "60s" } })
    const node = await edge.node(cleanup, tower)
    const stream = await edge.admin.stream(submission)
    const run = await node.nextRun()
    const stopped = edge.stop("SIGTERM")
    await node.take("drain")
    run.answer("the last words")
    await stream.finish()
    expect(stream.text).toBe("the last words")
    expect(await stopped).toMatchObject({ code: 0 })
  })

  it.each(["SIGTERM", "SIGINT"] as const)("ED3 a second %s ends a drain at once", async (signal) => {
    const edge = await start({ edge: { drain_timeout: "60s" } })
    const node = await edge.node(cleanup, tower)
    const stream = await edge.admin.stream(submission)
    const run = await node.nextRun()
    run.started().delta("never finished")
    await stream.until("delta")
    edge.signal(signal)
    await node.take("drain")
    const { code, ms } = await edge.stop(signal)
    expect(code).toBe(130)
    expect(ms).toBeLessThan(5_000)
  })
})

describe("an edge that is gone and comes back", () => {
  it("ED4 takes its ports at once, its nodes return, and runs of before are answered cancel", async () => {
    const laptop = mockNodeConfig("laptop", { adapters: [{ name: "other", type: "mock", slots: 1 }] })
    const nodes = [mockNodeConfig("tower"), laptop]
    const edge = await start({ nodes })
    const raw = await edge.node(cleanup, tower)
    const real = new MockNode(cleanup, { edge: edge.nodes, token: tokenOf("laptop") })
    await edge.admin.untilNode("laptop", "routable")
    const stream = await edge.admin.stream(submission)
    const run = await raw.nextRun()
    run.started().delta("cut off")
    await stream.until("delta")
    await edge.kill()
    expect(await stream.over).toBe(false)
    await raw.closed
    const again = await start({ nodes, ...samePorts(edge) })
    expect(again.nodes).toEqual(edge.nodes)
    await again.admin.untilNode("laptop", "routable")
    expect(real.exit).toBeUndefined()
    const back = await RawNode.connect(cleanup, again.nodes)
    const { result } = await back.handshake({ token: tokenOf("tower"), heldRuns: [run.held] })
    if (result.case !== "accepted") throw new Error("the node was refused")
    expect(result.value.heldRuns.map(({ decision }) => decision.case)).toEqual(["cancel"])
    // Nothing of before is running for ever.
    expect(await again.admin.runs("?active=true")).toEqual([])
    const fresh = await again.admin.stream({ adapter: "other", target: "echo", prompt: "anew" })
    expect((await fresh.finish()).type).toBe("completed")
    expect(fresh.text).toBe("anew")
  })

  it.each(["nodes", "http", "ops"])(
    "ED6 a taken port of %s ends the start with 2, its name and address",
    async (listener) => {
      const server = createServer()
      cleanup.defer(() => void server.close())
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      if (address === null || typeof address === "string") throw new Error("no port")
      const file = new TempFolder(cleanup).write(
        "edge.yaml",
        configText({ ...config, listen: { [listener]: { port: address.port } } })
      )
      const { code, stdout, stderr } = await runCommand(["serve", "--config", file])
      expect(code).toBe(2)
      expect(stdout).toBe("")
      const said = stderr.split("\n").filter((line) => line.startsWith("edge: "))
      expect(said.length).toBe(1)
      expect(said[0]).toContain(`listen.${listener}`)
      expect(said[0]).toContain(`127.0.0.1:${address.port}`)
      expect(stderr).not.toMatch(/\bat .*\.ts:\d+/)
    }
  )

  it("ED8 a second edge on the ports of the first is refused, and the first goes on", async () => {
    const edge = await start()
    const file = new TempFolder(cleanup).write("edge.yaml", configText({ ...config, ...samePorts(edge) }))
    const { code, stderr } = await runCommand(["serve", "--config", file])
    expect(code).toBe(2)
    expect(stderr).toContain("another process uses this port")
    const node = await edge.node(cleanup, tower)
    node.onRun = (run) => run.answer("still here")
    const stream = await edge.admin.stream(submission)
    await stream.finish()
    expect(stream.text).toBe("still here")
  })
})

describe("an edge whose log nobody reads any more", () => {
  it.each(["stdout", "stderr"] as const)("ED7 goes on serving when its %s has gone away", async (stream) => {
    const edge = await start()
    edge.closeOutput(stream)
    const node = await edge.node(cleanup, tower)
    node.onRun = (run) => run.answer("still here")
    // Several lines of log, so that writing them has failed before the last run.
    for (let i = 0; i < 5; i++) {
      const served = await edge.admin.stream(submission)
      await served.finish()
      expect(served.text).toBe("still here")
    }
    expect(edge.exit).toBeUndefined()
    expect(await edge.stop("SIGTERM")).toMatchObject({ code: 0 })
  })
})
