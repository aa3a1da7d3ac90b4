// RS5: somebody sets the clock of the edge's machine while nodes are connected and runs go on. All durations and leases
// run on the monotonic clock, so that nobody may notice.
import { writeFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { RawNode } from "./harness/RawNode.ts"
import { TempFolder } from "./harness/TempFolder.ts"
import { eventually } from "./harness/waiting.ts"

const HOUR_MS = 3_600_000
const preload = new URL("./harness/shiftClock.ts", import.meta.url).href

describe("an edge whose wall clock jumps", () => {
  it.each([
    ["three days ahead", 72 * HOUR_MS],
    ["an hour back", -HOUR_MS]
  ])("RS5 %s loses no node, fires no clock and shows no negative duration", async (_, shiftMs) => {
    await using cleanup = new AsyncDisposableStack()
    const clock = new TempFolder(cleanup).write("clock", "0")
    const edge = await EdgeProcess.start(
      cleanup,
      {
        nodes: [mockNodeConfig("tower", { slots: 1 })],
        link: { heartbeat_interval: "200ms", resume_grace: "30s" },
        runs: { queue_timeout: "50s", first_event_timeout: "50s", idle_timeout: "50s", total_timeout: "55s" }
      },
      { env: { NODE_OPTIONS: `--import ${preload}`, IOP_TEST_CLOCK: clock } }
    )
    const jump = async (ms: number) => {
      writeFileSync(clock, String(ms))
      edge.signal("SIGUSR2")
      await edge.line("that its clock was set", (line) => line === `the wall clock is off by ${ms} ms`)
    }
    const beats = (node: RawNode) => {
      const { pings } = node
      // More than the beats after which a link would be dead.
      return eventually("some heartbeats", () => node.pings > pings + 5)
    }
    const node = await edge.node(cleanup, {
      id: "tower",
      token: tokenOf("tower"),
      offers: { mock: ["echo"] }
    })
    const submission = { adapter: "mock", target: "echo", prompt: "x" }
    const running = await edge.admin.stream(submission)
    const run = await node.nextRun()
    run.started().delta("one ")
    await running.until("delta")
    const queued = await edge.admin.stream(submission)
    await queued.until("queued")
    const before = await edge.admin.node("tower")

    await jump(shiftMs)
    const shown = (await edge.admin.nodes()) as ReadonlyArray<unknown>
    expect(shown.length).toBe(1)
    await beats(node)
    expect((await edge.admin.node("tower")).epoch).toBe(before.epoch)
    for (const { runId } of [running, queued]) {
      const record = await edge.admin.run(runId)
      expect(["streaming", "queued"]).toContain(record.phase)
      expect(record.total_ms).toBeGreaterThanOrEqual(0)
      expect(record.total_ms).toBeLessThan(55_000)
    }

    // A link that is lost while the clock jumps back: the grace goes on by its own clock.
    node.reset()
    await edge.admin.untilNode("tower", "offline")
    await jump(0)
    const back = await RawNode.connect(cleanup, edge.nodes)
    const { result } = await back.handshake({
      token: tokenOf("tower"),
      bootId: node.bootId,
      heldRuns: [run.held]
    })
    if (result.case !== "accepted") throw new Error("the node was refused")
    const decision = result.value.heldRuns[0]?.decision
    if (decision?.case !== "resume") throw new Error(`the run was not resumed: ${decision?.case}`)
    back.resumeRun(run, decision.value.handle, decision.value.afterSeq)
    back.status({ mock: ["echo"] })
    run.delta("two").completed()
    expect((await running.finish()).type).toBe("completed")
    expect(running.text).toBe("one two")
    ;(await back.nextRun()).answer("served")
    expect((await queued.finish()).type).toBe("completed")
    await beats(back)

    expect(back.end).toBeUndefined()
    const metrics = await edge.metrics()
    for (const { name, value } of metrics.samples) {
      if (name.startsWith("iop_edge_")) expect(value, name).toBeGreaterThanOrEqual(0)
    }
    expect(metrics.sum("iop_edge_run_duration_seconds_sum")).toBeLessThan(110)
    expect(metrics.count("iop_edge_links_ended_total", { reason: "heartbeat" })).toBe(0)
    for (const { fields, message } of edge.log) {
      if (message !== "run ended") continue
      for (const name of ["queue_ms", "first_event_ms", "total_ms"]) {
        expect(Number(fields[name]), name).toBeGreaterThanOrEqual(0)
        expect(Number(fields[name]), name).toBeLessThan(110_000)
      }
    }
    expect(await edge.stop("SIGTERM")).toMatchObject({ code: 0 })
  })
})
