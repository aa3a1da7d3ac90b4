// The end of an edge whose peers are real processes: stopped ones cannot hold it up, living ones are kept alive until
// their runs are over. And the log's reader who hangs, whom nobody may wait for either.
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { mockNodeConfig, type TestConfig, tokenOf } from "./harness/config.ts"
import { countPrompt, countText } from "./harness/countText.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { MockNode } from "./harness/MockNode.ts"
import { startCommand } from "./harness/runCommand.ts"
import { eventually, inParallel } from "./harness/waiting.ts"

/** Beyond its own clocks an edge needs a second or two; a busy machine gets more. */
const SLACK_MS = 15_000
const DRAIN_MS = 1_500

let cleanup: AsyncDisposableStack

beforeEach(() => {
  cleanup = new AsyncDisposableStack()
})

afterEach(() => cleanup.disposeAsync())

const start = (more: TestConfig = {}) =>
  EdgeProcess.start(cleanup, {
    nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop")],
    ...more,
    edge: { drain_timeout: `${DRAIN_MS}ms`, ...more.edge },
    link: { heartbeat_interval: "250ms", ...more.link }
  })

const join = async (edge: EdgeProcess, id: string) => {
  const node = new MockNode(cleanup, { edge: edge.nodes, token: tokenOf(id), name: id })
  await edge.admin.untilNode(id, "routable")
  return node
}

/** A caller as a process, in the middle of reading an answer that has no end. */
const reader = async (edge: EdgeProcess) => {
  const client = startCommand(cleanup, [
    "run",
    "mock",
    "lorem",
    'x {"tokens": 1000000, "interval_ms": 5}',
    "--connect",
    edge.admin.base
  ])
  await eventually("the first words of an answer", () => client.stdoutBytes.length > 0)
  return client
}

describe("an edge that is told to stop while its peers stand still", () => {
  it("ED1 ends at once when nothing runs, although its nodes are stopped processes", async () => {
    const edge = await start({ link: { heartbeat_interval: "30s" } })
    for (const id of ["tower", "laptop"]) (await join(edge, id)).signal("SIGSTOP")
    const { code, ms } = await edge.stop("SIGTERM")
    expect(code).toBe(0)
    expect(ms).toBeLessThan(1_000 + SLACK_MS)
  })

  it("ED2 ends when its drain is over, although node and client of a run are stopped processes", async () => {
    const edge = await start({ link: { heartbeat_interval: "30s" } })
    const node = await join(edge, "tower")
    const client = await reader(edge)
    client.signal("SIGSTOP")
    node.signal("SIGSTOP")
    const { code, ms } = await edge.stop("SIGTERM")
    expect(code).toBe(0)
    expect(ms).toBeGreaterThan(DRAIN_MS - 100)
    expect(ms).toBeLessThan(DRAIN_MS + 2_000 + SLACK_MS)
    expect(edge.stderr.filter((line) => /unhandled|uncaught|"level":"error"/i.test(line))).toEqual([])
    // The client learns that this was no proper end.
    client.signal("SIGCONT")
    expect((await client.end()).code).not.toBe(0)
  })

  it("ED2 ends when its drain is over, although a stopped client has filled its connection", async () => {
    const edge = await start()
    await join(edge, "tower")
    const client = startCommand(cleanup, [
      "run",
      "mock",
      "flood",
      'x {"tokens": 100000000, "size": 1000}',
      "--connect",
      edge.admin.base
    ])
    await eventually("the first words of an answer", () => client.stdoutBytes.length > 0)
    client.signal("SIGSTOP")
    // It stands still when the edge has no more room for it, and so has the node's window. Heartbeats go on.
    let before = 0
    let still = 0
    await eventually("the flood to come to a stop", async () => {
      const frames = (await edge.metrics()).count("iop_edge_link_frames_total", { direction: "in" })
      still = frames > 500 && frames - before <= 2 ? still + 1 : 0
      before = frames
      return still >= 3
    })
    const { code, ms } = await edge.stop("SIGTERM")
    expect(code).toBe(0)
    expect(ms).toBeLessThan(DRAIN_MS + 2_000 + SLACK_MS)
  })
})

describe("an edge that drains for longer than a link may be silent", () => {
  it("ED5 loses no node, and no node gives it up, until the last answer is whole", async () => {
    const edge = await start({ edge: { drain_timeout: "60s" }, link: { heartbeat_interval: "150ms" } })
    const nodes = [await join(edge, "tower"), await join(edge, "laptop")]
    const tokens = 250
    const stream = await edge.admin.stream({
      adapter: "mock",
      target: "count",
      prompt: countPrompt(tokens, { interval_ms: 10 })
    })
    await stream.until("delta")
    const stopped = edge.stop("SIGTERM")
    await eventually("readyz to say no", async () => (await edge.admin.status("/readyz")) === 503)
    // The node with the run is there for several dead times; the other may leave in order.
    const states: Array<string> = []
    const whole = countText(stream.runId, tokens)
    await eventually("most of the answer", async () => {
      if (stream.text.length > whole.length * 0.8) return true
      states.push((await edge.admin.node("tower")).state)
      return false
    })
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe(whole)
    expect(new Set(states)).toEqual(new Set(["draining"]))
    expect(await stopped).toMatchObject({ code: 0 })
    for (const node of nodes) {
      await node.line("that the edge took its leave", (line) => /next attempt in/.test(line))
      expect(node.stderr.filter((line) => /silent|heard nothing/.test(line))).toEqual([])
    }
  })
})

describe("an edge whose log is not read any more", () => {
  it("ED7 goes on serving with a full pipe, and says later how many lines that cost", async () => {
    const edge = await start({ runs: { circuit: { failures: 1000, window: "10ms" } } })
    const node = await edge.node(cleanup, {
      id: "tower",
      token: tokenOf("tower"),
      offers: { mock: ["echo"] }
    })
    // The end of each run is a line of a kilobyte: together more than pipe and edge keep.
    node.onRun = (run) => run.started().failed("x".repeat(1_000), false)
    edge.pauseOutput("stderr")
    const runs = 2_000
    await inParallel(Array.from({ length: runs }), 8, async () => {
      const stream = await edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x" })
      expect((await stream.finish()).code).toBe("adapter_error")
    })
    const memory = edge.memory
    expect(edge.exit).toBeUndefined()
    edge.resumeOutput("stderr")
    node.onRun = (run) => run.answer("still here")
    // The notice comes with the next line that finds room.
    await eventually("the notice", async () => {
      const stream = await edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x" })
      await stream.finish()
      expect(stream.text).toBe("still here")
      return edge.log.some(({ message }) => message === "log lines left out")
    })
    const { fields } = await edge.logged("log lines left out")
    expect(Number(fields.lines)).toBeGreaterThan(0)
    expect(memory).toBeLessThan(400 * 1024 * 1024)
    expect(await edge.stop("SIGTERM")).toMatchObject({ code: 0 })
  })
})
