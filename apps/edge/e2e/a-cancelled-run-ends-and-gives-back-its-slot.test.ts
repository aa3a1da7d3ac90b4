// Cancelling in every phase and in every way that a caller has, and the clocks that cancel by themselves.
import { CancelCode } from "@iop/platform-common/gen/iop/v1/run_pb"
import { describe, expect, it } from "vitest"
import { mockNodeConfig } from "./harness/config.ts"
import { RawHttp } from "./harness/RawHttp.ts"
import { useEdge } from "./harness/useEdge.ts"

describe("an edge whose callers change their mind", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower", { slots: 1 })],
    link: { resume_grace: "300ms" },
    runs: { cancel_timeout: "400ms" }
  })

  const submission = { adapter: "mock", target: "echo", prompt: "x" }
  const submit = () => shared.edge.admin.stream(submission)
  const slots = async () => (await shared.edge.admin.node("tower")).slots_in_use

  it("CN1 a queued run that is cancelled vanishes, never leaves, and the others move up", async () => {
    const node = await shared.node("tower")
    const first = await submit()
    const firstRun = await node.nextRun()
    const second = await submit()
    const third = await submit()
    await second.until("queued")
    expect((await third.until("queued")).seq).toBe(1)
    expect((await shared.edge.admin.cancel(second.runId)).phase).toBe("cancelled")
    expect((await second.finish()).type).toBe("cancelled")
    firstRun.answer("one")
    await first.finish()
    const next = await node.nextRun()
    expect(next.request.runId).toBe(third.runId)
    next.answer("three")
    await third.finish()
    const ids = [...node.runs.values()].map((run) => run.request.runId)
    expect(ids).toEqual([first.runId, third.runId])
  })

  it("CN2 cancelling a running run tells the node and every consumer, and frees the slot", async () => {
    const node = await shared.node("tower")
    const stream = await submit()
    const run = await node.nextRun()
    run.started().delta("some ")
    await stream.until("delta")
    const watcher = await shared.edge.admin.watch(stream.runId)
    await watcher.until("delta")
    run.onCancel = () => run.stopped()
    await shared.edge.admin.cancel(stream.runId)
    expect((await run.untilCancelled()).code).toBe(CancelCode.CALLER)
    expect((await stream.finish()).type).toBe("cancelled")
    expect((await watcher.finish()).type).toBe("cancelled")
    expect(await slots()).toBe(0)
  })

  it("CN3 a node that ignores the cancel keeps its slot, visibly, and the run is over all the same", async () => {
    const node = await shared.node("tower")
    const stream = await submit()
    const run = await node.nextRun()
    run.started().delta("some ")
    await stream.until("delta")
    await shared.edge.admin.cancel(stream.runId)
    expect((await stream.finish()).type).toBe("cancelled")
    const record = await shared.edge.admin.run(stream.runId)
    expect(record).toMatchObject({ phase: "cancelled", slot_held: true })
    expect(await slots()).toBe(1)
    expect((await shared.edge.metrics()).sum("iop_edge_slots_in_use", { adapter: "mock" })).toBe(1)
    run.delta("more that nobody wants")
    const waiting = await submit()
    await waiting.until("queued")
    expect(node.runs.size).toBe(1)
    run.stopped("at last")
    const next = await node.nextRun()
    next.answer("free again")
    expect((await waiting.finish()).type).toBe("completed")
    expect(stream.text).toBe("some ")
    expect(await shared.edge.admin.run(stream.runId)).toMatchObject({ phase: "cancelled", slot_held: false })
  })

  it("CN4 a streaming caller who hangs up cancels", async () => {
    const node = await shared.node("tower")
    const stream = await submit()
    const run = await node.nextRun()
    run.started().delta("some ")
    await stream.until("delta")
    stream.leave()
    expect((await run.untilCancelled()).code).toBe(CancelCode.CALLER)
    run.stopped()
    await shared.edge.admin.untilRun(stream.runId, ["cancelled"])
  })

  it("CN4 so does one whose connection is reset", async () => {
    const node = await shared.node("tower")
    const http = await RawHttp.open(shared.cleanup, shared.edge.http)
    http.request("POST", "/admin/v1/runs?events=true", submission)
    const run = await node.nextRun()
    run.started().delta("some ")
    expect((await http.head()).status).toBe(200)
    http.socket.resetAndDestroy()
    await run.untilCancelled()
    run.stopped()
  })

  it("CN5 a caller who waits for a whole answer and hangs up cancels", async () => {
    const node = await shared.node("tower")
    const http = await RawHttp.open(shared.cleanup, shared.edge.http)
    http.request("POST", "/admin/v1/runs?events=true", { ...submission, stream: false })
    const run = await node.nextRun()
    expect(run.request.stream).toBe(false)
    run.started()
    http.socket.destroy()
    await run.untilCancelled()
    run.stopped()
    await shared.edge.admin.untilRun(run.request.runId, ["cancelled"])
  })

  it("CN5 a caller who hangs up while queued leaves no trace at the node", async () => {
    const node = await shared.node("tower")
    const first = await submit()
    const run = await node.nextRun()
    const second = await submit()
    await second.until("queued")
    second.leave()
    await shared.edge.admin.untilRun(second.runId, ["cancelled"])
    run.answer("one")
    await first.finish()
    expect(node.runs.size).toBe(1)
  })

  it("CN6 cancelling twice or too late answers the final state, and the node hears of it once", async () => {
    const node = await shared.node("tower")
    const stream = await submit()
    const run = await node.nextRun()
    run.started()
    await Promise.all([shared.edge.admin.cancel(stream.runId), shared.edge.admin.cancel(stream.runId)])
    await run.untilCancelled()
    run.stopped()
    await stream.finish()
    expect((await shared.edge.admin.cancel(stream.runId)).phase).toBe("cancelled")
    expect(node.count("runCancel")).toBe(1)
    const done = await submit()
    ;(await node.nextRun()).answer("done")
    await done.finish()
    expect((await shared.edge.admin.cancel(done.runId)).phase).toBe("completed")
    expect(node.count("runCancel")).toBe(1)
  })

  it("CN9 a detached run goes on without its caller, and a later reader gets all of it", async () => {
    const node = await shared.node("tower")
    const stream = await shared.edge.admin.stream({ ...submission, detached: true })
    const run = await node.nextRun()
    run.started().delta("some ")
    await stream.until("delta")
    stream.leave()
    const later = await shared.edge.admin.watch(stream.runId)
    run.delta("more").completed()
    expect((await later.finish()).type).toBe("completed")
    expect(later.text).toBe("some more")
    expect(run.cancelled).toBeUndefined()
  })
})

/** The figures of a message that have a unit of time, in milliseconds. */
const figures = (message: string | undefined): ReadonlyArray<number> =>
  [...(message ?? "").matchAll(/(\d+(?:\.\d+)?) ?(ms|s)\b/g)].map(
    ([, figure, unit]) => Number(figure) * (unit === "s" ? 1000 : 1)
  )

/** The message names what was measured and the limit; seconds are rounded to a tenth. */
const expectClock = (message: string | undefined, limitMs: number) => {
  const [measured = 0, limit = 0] = figures(message)
  expect(measured, `measured value in: ${message}`).toBeGreaterThanOrEqual(limitMs - 50)
  expect(limit, `limit in: ${message}`).toBe(limitMs)
}

describe("an edge that waits long for no node", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower", { slots: 1 })],
    runs: { cancel_timeout: "300ms", first_event_timeout: "450ms", idle_timeout: "500ms" }
  })

  const submit = () => shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x" })

  it("CN7 the first-event clock ends a run whose node says nothing", async () => {
    const node = await shared.node("tower")
    const stream = await submit()
    const run = await node.nextRun()
    const end = await stream.finish()
    expect(end.code).toBe("first_event_timeout")
    expectClock(end.message, 450)
    expect((await run.untilCancelled()).code).toBe(CancelCode.DEADLINE)
    run.stopped()
  })

  it("CN7 the idle clock ends a run that falls silent", async () => {
    const node = await shared.node("tower")
    const stream = await submit()
    const run = await node.nextRun()
    run.started().delta("some ")
    const end = await stream.finish()
    expect(end.code).toBe("idle_timeout")
    expectClock(end.message, 500)
    expect((await run.untilCancelled()).code).toBe(CancelCode.DEADLINE)
    run.stopped()
    expect(stream.text).toBe("some ")
  })
})

describe("an edge that waits long for no slot", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower", { slots: 1 })],
    link: { resume_grace: "30s" },
    runs: { cancel_timeout: "300ms", queue_timeout: "400ms" }
  })

  const submit = (more: { readonly timeout_ms?: number } = {}) =>
    shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x", ...more })

  it("CN7 the queue clock ends a run that waits too long", async () => {
    const node = await shared.node("tower")
    const first = await submit()
    const run = await node.nextRun()
    const second = await submit()
    await second.until("queued")
    const end = await second.finish()
    expect(end.code).toBe("queue_timeout")
    expect(end.message).toMatch(/slot/)
    expectClock(end.message, 400)
    run.answer("one")
    await first.finish()
    expect(node.runs.size).toBe(1)
  })

  it("CN7 the total clock ends a run however busy it is", async () => {
    const node = await shared.node("tower")
    const stream = await submit({ timeout_ms: 700 })
    const run = await node.nextRun()
    run.started()
    const beat = setInterval(() => run.delta("."), 50)
    shared.cleanup.defer(() => clearInterval(beat))
    const end = await stream.finish()
    expect(end.code).toBe("run_timeout")
    expectClock(end.message, 700)
    clearInterval(beat)
    expect((await run.untilCancelled()).code).toBe(CancelCode.DEADLINE)
    run.stopped()
  })

  it("CN8 the total clock goes on while a node is lost and may come back", async () => {
    const node = await shared.node("tower")
    const stream = await submit({ timeout_ms: 1_000 })
    const run = await node.nextRun()
    run.started().delta("some ")
    await stream.until("delta")
    node.reset()
    await shared.edge.admin.untilNode("tower", "offline")
    const end = await stream.finish()
    expect(end.code).toBe("run_timeout")
    // The grace of thirty seconds did not extend it.
    expect((await shared.edge.admin.run(stream.runId)).total_ms).toBeLessThan(20_000)
  })
})
