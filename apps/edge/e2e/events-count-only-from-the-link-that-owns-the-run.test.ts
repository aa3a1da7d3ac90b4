// Events that are unknown, forged, doubled, missing or too late, from a raw node on the real process: what they do to
// their run, and that they do nothing to any other.
import { randomBytes } from "node:crypto"
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { RawNode } from "./harness/RawNode.ts"
import { type RawRun, textEvent } from "./harness/RawRun.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually, within } from "./harness/waiting.ts"

const adapter = (name: string) => ({ adapters: [{ name, type: "mock", slots: 4 }] })

describe("an edge that is told things about runs", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop", adapter("other"))],
    link: { resume_grace: "2s" }
  })

  const submit = (name = "mock") => shared.edge.admin.stream({ adapter: name, target: "echo", prompt: "x" })
  const strays = async (kind: string) =>
    (await shared.edge.metrics()).count("iop_edge_link_stray_events_total", { kind })
  const laptop = async () => {
    const options = { id: "laptop", token: tokenOf("laptop"), offers: { other: ["echo"] } }
    return shared.edge.node(shared.cleanup, options)
  }
  const begin = async (node: RawNode, name = "mock") => {
    const stream = await submit(name)
    const run = await node.nextRun()
    run.started().delta("begin ")
    await stream.until("delta")
    return { stream, run }
  }

  // Before the flood: lines about strays are limited, and this warning must not be among those left out.
  it("EV2 an event for another node's run is forged: dropped, counted, warned of; ten of them end the link", async () => {
    const victim = await shared.node("tower")
    const forger = await laptop()
    const { stream, run } = await begin(victim)
    const before = await strays("forged")
    const forge = () =>
      forger.send({
        case: "runEvent",
        value: { handle: run.handle, seq: run.lastSeq + 1, event: textEvent("forged!") }
      })
    for (let i = 0; i < 9; i++) forge()
    await eventually("nine to be counted", async () => (await strays("forged")) === before + 9)
    expect(forger.end).toBeUndefined()
    await shared.edge.line("a warning with the sender's id", (line) =>
      line.includes("another node") && line.includes('"laptop"') ? line : undefined
    )
    forge()
    await within("the end of the forger's link", forger.closed)
    run.delta("end").completed()
    await stream.finish()
    expect(stream.text).toBe("begin end")
  })

  it("EV1 an event for an unknown run is dropped and counted, a hundred of them end the link", async () => {
    const node = await shared.node("tower")
    const { stream, run } = await begin(node)
    const before = await strays("unknown")
    const stray = (times: number) => {
      for (let i = 0; i < times; i++) {
        node.send({ case: "runEvent", value: { handle: 4_000_000, seq: 1, event: textEvent("stray") } })
      }
    }
    stray(50)
    await eventually("all of them to be counted", async () => (await strays("unknown")) === before + 50)
    run.delta("end").completed()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("begin end")
    stray(50)
    expect((await node.take("goodbye")).code).toBe(GoodbyeCode.PROTOCOL_ERROR)
    await within("the end of the link", node.closed)
    await shared.edge.logged("log lines left out", ({ fields }) => fields.kind === "stray_event")
    const lines = shared.edge.log.filter(({ message }) => message.includes("an unknown run"))
    expect(lines.length).toBeLessThan(50)
  })

  it("EV3 a doubled event is dropped, counted and acknowledged again", async () => {
    const node = await shared.node("tower")
    const { stream, run } = await begin(node)
    const before = (await shared.edge.metrics()).count("iop_edge_run_duplicate_events_total")
    const acks = node.count("runAck")
    run.forge(2, textEvent("begin "))
    await eventually(
      "the duplicate to be counted",
      async () => (await shared.edge.metrics()).count("iop_edge_run_duplicate_events_total") === before + 1
    )
    await eventually("an acknowledgement", () => node.count("runAck") > acks)
    run.delta("end").completed()
    await stream.finish()
    expect(stream.text).toBe("begin end")
  })

  it("EV4 a gap ends the run with protocol_error and leaves the other runs of the link alone", async () => {
    const node = await shared.node("tower")
    const { stream: healthy, run: healthyRun } = await begin(node)
    const { stream, run } = await begin(node)
    run.forge(4, textEvent("after a gap"))
    const end = await stream.finish()
    expect(end.code).toBe("protocol_error")
    expect(end.message).toMatch(/3 is missing/)
    await run.untilCancelled()
    run.forge(3, { case: "cancelled", value: { reason: "as asked" } })
    healthyRun.delta("end").completed()
    await healthy.finish()
    expect(healthy.text).toBe("begin end")
    expect(stream.text).toBe("begin ")
    expect(node.end).toBeUndefined()
  })

  it("EV5 the first of two different events with one number wins", async () => {
    const node = await shared.node("tower")
    const { stream, run } = await begin(node)
    run.forge(2, textEvent("another truth"))
    run.delta("end").completed()
    await stream.finish()
    expect(stream.text).toBe("begin end")
  })

  it.each([
    ["a delta before started", (run: RawRun) => run.delta("too early")],
    ["started twice", (run: RawRun) => run.started().started()]
  ])("EV6 %s is a protocol_error of the run", async (_what, act) => {
    const node = await shared.node("tower")
    const stream = await submit()
    const run = await node.nextRun()
    act(run)
    expect((await stream.finish()).code).toBe("protocol_error")
    await run.untilCancelled()
    run.stopped()
    expect(node.end).toBeUndefined()
  })

  it("EV7 what comes after the end is dropped and counted, and nothing follows the end", async () => {
    const node = await shared.node("tower")
    const before = await strays("ended")
    const { stream, run } = await begin(node)
    run.completed()
    expect((await stream.finish()).type).toBe("completed")
    const events = (await shared.edge.admin.run(stream.runId)).events
    run.forge(run.lastSeq + 1, textEvent("an afterthought"))
    run.forge(run.lastSeq + 2, { case: "completed", value: { finishReason: 1 } })
    await eventually("both to be counted", async () => (await strays("ended")) === before + 2)
    expect((await shared.edge.admin.run(stream.runId)).events).toBe(events)
    const again = await shared.edge.admin.watch(stream.runId)
    await again.finish()
    expect(again.text).toBe("begin ")
    expect(again.events.at(-1)?.type).toBe("completed")
    expect(node.end).toBeUndefined()
  })

  it("EV7 an event in the same write as the end, after it, is dropped too", async () => {
    const node = await shared.node("tower")
    const { stream, run } = await begin(node)
    run.send({ case: "completed", value: { finishReason: 1 } }, textEvent("an afterthought"), {
      case: "failed",
      value: { code: 1, message: "on second thought" }
    })
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("begin ")
  })

  it("EV8 an answer without a word is an empty answer", async () => {
    const node = await shared.node("tower")
    const stream = await submit()
    ;(await node.nextRun()).started().completed()
    const end = await stream.finish()
    expect(end).toMatchObject({ type: "completed", finish_reason: "stop" })
    expect(end).not.toHaveProperty("usage")
    expect(stream.text).toBe("")
  })

  it("EV9 a hundred thousand empty deltas end in an answer without growing anything", async () => {
    const node = await shared.node("tower")
    const stream = await submit()
    const run = await node.nextRun()
    run.started().delta("x")
    await stream.until("delta")
    const before = shared.edge.memory
    run.send(...Array.from({ length: 100_000 }, () => textEvent("")), {
      case: "completed",
      value: { finishReason: 1 }
    })
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("x")
    expect(shared.edge.memory - before).toBeLessThan(128 * 1024 * 1024)
  })

  it("EV10 one delta larger than the run window arrives whole", async () => {
    const node = await shared.node("tower")
    const { stream, run } = await begin(node)
    const big = "가나다라".repeat((512 * 1024) / 12)
    run.delta(big).completed()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe(`begin ${big}`)
  })

  describe("EV12 claims to hold runs", () => {
    const bootId = randomBytes(16)
    const token = tokenOf("tower")
    const offers = { mock: ["echo"] }
    const first = () => shared.edge.node(shared.cleanup, { id: "tower", token, bootId, offers })
    const again = async (heldRuns: ReadonlyArray<RawRun["held"]>) => {
      const node = await RawNode.connect(shared.cleanup, shared.edge.nodes)
      const { result } = await node.handshake({ token, bootId, heldRuns })
      if (result.case !== "accepted") throw new Error("the node was refused")
      node.status(offers)
      return { node, decisions: result.value.heldRuns }
    }

    it("EV12 a hole between the edge's last event and the node's first ends the run with protocol_error", async () => {
      const node = await first()
      const { stream, run } = await begin(node)
      node.reset()
      const { decisions } = await again([{ ...run.held, firstUnackedSeq: 5, lastSeq: 6 }])
      expect(decisions[0]?.decision.case).toBe("cancel")
      expect((await stream.finish()).code).toBe("protocol_error")
    })

    it("EV12 runs that are over or unknown are answered cancel", async () => {
      const node = await first()
      const { stream, run } = await begin(node)
      run.completed()
      await stream.finish()
      node.reset()
      const unknown = { runId: "run_that_never_was", attempt: 1, firstUnackedSeq: 1, lastSeq: 3 }
      const { decisions } = await again([run.held, unknown])
      expect(decisions.map(({ runId, decision }) => [runId, decision.case])).toEqual([
        [run.request.runId, "cancel"],
        [unknown.runId, "cancel"]
      ])
    })

    it("EV12 a claim that fits is resumed where the edge left off, nothing lost and nothing twice", async () => {
      const node = await first()
      const { stream, run } = await begin(node)
      node.reset()
      await shared.edge.admin.untilNode("tower", "offline")
      run.delta("in the dark ")
      const { node: back, decisions } = await again([run.held])
      const decision = decisions[0]?.decision
      if (decision?.case !== "resume") throw new Error("the run was not resumed")
      back.resumeRun(run, decision.value.handle, decision.value.afterSeq)
      run.delta("end").completed()
      expect((await stream.finish()).type).toBe("completed")
      expect(stream.text).toBe("begin in the dark end")
    })
  })
})
