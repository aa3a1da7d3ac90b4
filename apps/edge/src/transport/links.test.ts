// A registered link: what the runs ask of it, events that are not its own, and nodes that talk too much or not at all.
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { CancelCode } from "@iop/platform-common/gen/iop/v1/run_pb"
import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { chatInput } from "@iop/platform-common/protocol/runInputText"
import { expect, it } from "vitest"
import type { NodeBody, RawNode } from "../../e2e/harness/RawNode.ts"
import { eventually, within } from "../../e2e/harness/waiting.ts"
import { dispatch, RecordingSink, startEdge } from "../../test/transportFixture.ts"

const started = (handle: number, seq = 1): NodeBody => ({
  case: "runEvent",
  value: { handle, seq, event: { case: "started", value: {} } }
})

const times = (count: number, body: NodeBody) => Array.from({ length: count }, () => body)

/** Resolves when the edge has read all that the node sent before: a status goes through like everything else. */
const readUp = async (node: RawNode, reason: string, status: () => string | undefined) => {
  node.status({ mock: ["echo"] }, { state: AdapterState.DEGRADED, reason })
  await eventually(`the status ${reason}`, () => status() === reason)
}

it("EV1 events of an unknown run are dropped and counted; a hundred within ten seconds end the link", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const reason = () => edge.registry.find("tower")?.status?.adapters.get("mock")?.reason
  node.send(...times(99, started(12_345)))
  await readUp(node, "still here", reason)
  expect(edge.count("strayEvent:unknown")).toBe(99)
  expect(edge.log.filter((line) => line.text.includes("an unknown run")).length).toBeLessThanOrEqual(10)
  node.send(started(12_345))
  const goodbye = await node.take("goodbye")
  expect(goodbye.code).toBe(GoodbyeCode.PROTOCOL_ERROR)
  expect(goodbye.message).toContain("100 events for runs that it does not have")
  expect(edge.count("protocolError:stray_events")).toBe(1)
})

it("EV7 events of a run that is over are dropped and counted as such, in the read that ends it too", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  const sink = new RecordingSink()
  sink.onEvent = (seq) => {
    sink.calls.push(String(seq))
    if (seq === 2) link.release(1)
  }
  link.sendRun(dispatch(), sink)
  const { handle } = await node.take("runRequest")
  node.send(started(handle, 1), started(handle, 2), started(handle, 3))
  await eventually("the stray event", () => edge.count("strayEvent:ended") === 1)
  expect(sink.calls).toEqual(["1", "2", "end"])
})

it("EV2 events for another node's run are counted as forged, ten end the link, the victim sees nothing", async () => {
  await using edge = await startEdge()
  const victim = await edge.node("attic")
  const link = await edge.link("attic")
  const sink = new RecordingSink()
  link.sendRun(dispatch(), sink)
  const { handle } = await victim.take("runRequest")
  const forger = await edge.node("tower")
  forger.send(...times(10, started(handle)))
  const goodbye = await forger.take("goodbye")
  expect(goodbye.code).toBe(GoodbyeCode.PROTOCOL_ERROR)
  expect(goodbye.message).toContain("10 events for runs of other nodes")
  expect(edge.count("strayEvent:forged")).toBe(10)
  const warnings = edge.log.filter((line) => line.text.includes("a run of another node"))
  expect(warnings[0]?.text).toContain('"node":"tower"')
  victim.send(started(handle))
  await eventually("the victim's event", () => sink.calls.at(-1) === "end")
  expect(sink.calls).toEqual(["1 started", "end"])
  expect(victim.end).toBeUndefined()
})

it("EV1 a handle whose link has ended is nobody's: its events are unknown, not forged", async () => {
  await using edge = await startEdge()
  const gone = await edge.node("attic")
  const link = await edge.link("attic")
  link.sendRun(dispatch(), new RecordingSink())
  const { handle } = await gone.take("runRequest")
  gone.reset()
  await eventually("the loss", () => edge.runs.lost.length === 1)
  const node = await edge.node("tower")
  node.send(started(handle))
  await eventually("the stray event", () => edge.count("strayEvent:unknown") === 1)
  expect(edge.count("strayEvent:forged")).toBe(0)
})

it("acknowledgements of one turn leave as one, the highest", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  link.sendRun(dispatch(), new RecordingSink())
  const { handle } = await node.take("runRequest")
  link.ack(handle, 3)
  link.ack(handle, 7)
  link.ack(handle, 5)
  expect(await node.take("runAck")).toMatchObject({ handle, seq: 7 })
  link.ack(handle, 8)
  expect(await node.take("runAck")).toMatchObject({ handle, seq: 8 })
  expect(node.count("runAck")).toBe(2)
})

it("each read with events of a run wakes it once", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  const sink = new RecordingSink()
  link.sendRun(dispatch(), sink)
  const { handle } = await node.take("runRequest")
  node.send(started(handle, 1), started(handle, 2))
  await eventually("the first read", () => sink.calls.length === 3)
  node.send(started(handle, 3))
  await eventually("the second read", () => sink.calls.length === 5)
  expect(sink.calls).toEqual(["1 started", "2 started", "end", "3 started", "end"])
})

it("LK7 a node that floods the edge with pongs is ended with a reason; others are not touched", async () => {
  await using edge = await startEdge()
  const other = await edge.node("attic")
  const node = await edge.node("tower")
  node.send(...times(5000, { case: "pong", value: { nonce: 1 } }))
  const goodbye = await node.take("goodbye")
  expect(goodbye.code).toBe(GoodbyeCode.PROTOCOL_ERROR)
  expect(goodbye.message).toContain("status and pong frames a second")
  expect(edge.count("protocolError:chatty")).toBe(1)
  expect(other.end).toBeUndefined()
  expect(edge.registry.connected().map((entry) => entry.record.id)).toEqual(["attic"])
})

it("a silent node is suspect before it is dead, and one frame makes it alive again", async () => {
  await using edge = await startEdge({
    link: { heartbeat_interval: "50ms", suspect_after: 2, dead_after: 1000 }
  })
  const node = await edge.node("tower")
  const changes: Array<string> = []
  edge.registry.watch((_entry, change) => changes.push(change))
  node.answersPings = false
  await eventually("suspicion", () => changes.includes("suspect"))
  expect(edge.registry.find("tower")?.suspect).toBe(true)
  node.send({ case: "pong", value: { nonce: 1 } }, { case: "nodeStatus", value: {} })
  await eventually("the status", () => changes.includes("status"))
  // Trusted from the very frame, not from the next look at the pulse.
  expect(changes).toEqual(["suspect", "alive", "status"])
  expect(node.end).toBeUndefined()
})

it("a cancel removes a request that has not left, and follows one that has", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  const removed = link.sendRun(dispatch({ runId: "removed" }), new RecordingSink())
  if (!("handle" in removed)) throw new Error("not sent")
  expect(link.cancel(removed.handle, "caller", "left")).toBe("removed")
  const sent = link.sendRun(dispatch({ runId: "sent" }), new RecordingSink())
  if (!("handle" in sent)) throw new Error("not sent")
  expect((await node.take("runRequest")).runId).toBe("sent")
  expect(link.cancel(sent.handle, "slow_consumer", "took nothing for 30 s")).toBe("sent")
  expect(await node.take("runCancel")).toMatchObject({
    handle: sent.handle,
    code: CancelCode.SLOW_CONSUMER,
    reason: "took nothing for 30 s"
  })
  expect(node.count("runRequest")).toBe(1)
  expect(node.count("runCancel")).toBe(1)
})

it("a request over the frame limit is not sent, and takes no handle", async () => {
  await using edge = await startEdge({ link: { max_edge_frame: "16KiB" } })
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  const sink = new RecordingSink()
  const large = link.sendRun(dispatch({ input: chatInput("x".repeat(20_000)) }), sink)
  expect(large).toEqual({
    unsendable: expect.stringMatching(/^the input is 20\d\d\d bytes on the wire, a node takes at most 16384$/)
  })
  link.sendRun(dispatch({ runId: "next" }), sink)
  expect((await node.take("runRequest")).runId).toBe("next")
})

it("an input that no node could read fails its run and leaves the link alone", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  const input = chatInput("hello")
  let deep: Record<string, unknown> = {}
  for (let level = 0; level < 500; level++) deep = { deep }
  const sent = link.sendRun(
    dispatch({ input: { ...input, parameters: deep } as typeof input }),
    new RecordingSink()
  )
  expect(sent).toEqual({ unsendable: expect.stringContaining("deep") })
  link.sendRun(dispatch({ runId: "next" }), new RecordingSink())
  expect((await node.take("runRequest")).runId).toBe("next")
})

it("a node that says it stops has no runs any more; after any other goodbye it may come back", async () => {
  await using edge = await startEdge()
  const stopping = await edge.node("tower")
  stopping.send({ case: "goodbye", value: { code: GoodbyeCode.SHUTDOWN, message: "bye\nnow" } })
  await within("the end", stopping.closed)
  const angry = await edge.node("attic")
  angry.send({ case: "goodbye", value: { code: GoodbyeCode.HEARTBEAT, message: "" } })
  await within("the end", angry.closed)
  expect(edge.runs.lost).toMatchObject([
    { reason: "the node stopped: bye\\u{a}now", mayResume: false },
    { reason: "the node ended the link", mayResume: true }
  ])
  expect(edge.count("linkEnded:node_goodbye")).toBe(2)
})

it("LK3 a reset is known at once, with its reason", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  node.reset()
  await eventually("the loss", () => edge.runs.lost.length === 1)
  expect(edge.runs.lost).toMatchObject([{ reason: "reset", mayResume: true }])
  expect(edge.registry.entry("tower")?.lastDisconnect).toMatchObject({ reason: "reset", mayResume: true })
})

it("a fault of the edge in one link ends that link alone and is logged", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const other = await edge.node("attic")
  const link = await edge.link("tower")
  const sink = new RecordingSink()
  sink.onEvent = () => {
    throw new Error("a bug")
  }
  link.sendRun(dispatch(), sink)
  const { handle } = await node.take("runRequest")
  node.send(started(handle))
  await within("the end", node.closed)
  await eventually("the loss", () => edge.runs.lost.length === 1)
  expect(edge.runs.lost).toMatchObject([{ epoch: link.epoch, mayResume: true }])
  expect(
    edge.log.some((line) => line.level === "Error" && line.text.includes("failed inside the edge"))
  ).toBe(true)
  expect(other.end).toBeUndefined()
  expect(edge.counts().links).toBe(1)
})

it("frames and bytes are told to the metrics", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  node.send(...times(10, { case: "pong", value: { nonce: 1 } }))
  node.close()
  await within("the end", node.closed)
  await eventually("the figures", () => edge.count("framesIn") === 11)
  expect(edge.count("framesOut")).toBe(1)
  expect(edge.count("bytesIn")).toBeGreaterThan(100)
})
