// SL1 and SL2 in small: two runs on one link, and the reader of one of them stops.

import { CancelCode } from "@iop/platform-common/gen/iop/v1/run_pb"
import { describe, expect, it } from "vitest"
import { mockNodeConfig } from "./harness/config.ts"
import { RawHttp } from "./harness/RawHttp.ts"
import { SseParser } from "./harness/SseParser.ts"
import { isHeld } from "./harness/tcpTable.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually } from "./harness/waiting.ts"

const MIB = 1024 * 1024
const DELTAS = 10_000
/** More than all the buffers of both sockets hold, so that the run really has to wait. */
const DELTA_LENGTH = 2_000

const submission = { adapter: "mock", target: "echo", prompt: "x" }

/** A function of run and number, so that loss, doubling and swapping show. */
const deltaText = (run: string, i: number): string => `${run}/${i}:`.padEnd(DELTA_LENGTH, String(i % 10))

describe("an edge whose reader stops reading", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower")],
    link: { heartbeat_interval: "500ms", resume_grace: "300ms" }
  })

  it("SL1 gives the other run of the link its normal time, bounded memory and heartbeats, and loses nothing", async () => {
    const node = await shared.node("tower")
    const slow = await RawHttp.open(shared.cleanup, shared.edge.http)
    slow.request("POST", "/admin/v1/runs?events=true", submission)
    const runA = await node.nextRun()
    const texts = Array.from({ length: DELTAS }, (_, i) => deltaText(runA.request.runId, i))
    runA.started().delta("first ")
    expect((await slow.head()).status).toBe(200)
    slow.socket.pause()
    const before = shared.edge.memory
    runA.answerRest(texts)
    await eventually("run A to wait for its reader", async () => {
      const sent = runA.lastSeq
      await shared.edge.admin.status("/healthz")
      await shared.edge.admin.status("/healthz")
      return runA.waitingEvents > 0 && sent === runA.lastSeq
    })
    const pings = node.pings
    const start = performance.now()
    const streamB = await shared.edge.admin.stream(submission)
    const runB = await node.nextRun()
    const textsB = Array.from({ length: 1_000 }, (_, i) => `${i} `)
    runB.answer(...textsB)
    expect((await streamB.finish()).type).toBe("completed")
    expect(streamB.text).toBe(textsB.join(""))
    // A second run takes milliseconds; held up by the first it would take until its clock.
    expect(performance.now() - start).toBeLessThan(20_000)
    expect(runA.waitingEvents).toBeGreaterThan(DELTAS / 4)
    await eventually("three more heartbeats", () => node.pings >= pings + 3)
    expect((await shared.edge.admin.node("tower")).state).toBe("routable")
    expect(shared.edge.memory - before).toBeLessThan(48 * MIB)
    slow.socket.resume()
    const parser = new SseParser()
    for (let chunk = await slow.chunk(); chunk !== undefined; chunk = await slow.chunk()) parser.push(chunk)
    const events = parser.events.map(({ data }) => JSON.parse(data) as { type: string; text?: string })
    expect(events.at(-1)?.type).toBe("completed")
    const received = events.filter(({ type }) => type === "delta").map(({ text }) => text)
    // A reader that is behind gets small pieces joined: what counts is the text.
    expect(received.join("") === ["first ", ...texts].join("")).toBe(true)
  })
})

describe("an edge with little patience for readers", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower")],
    runs: { consumer_timeout: "600ms" },
    link: { resume_grace: "300ms" }
  })

  it("SL2 ends the stream of a reader who takes nothing with slow_consumer, and frees slot and socket", async () => {
    const node = await shared.node("tower")
    const slow = await RawHttp.open(shared.cleanup, shared.edge.http)
    slow.request("POST", "/admin/v1/runs?events=true", submission)
    const run = await node.nextRun()
    run.started().delta("first ")
    await slow.head()
    slow.socket.pause()
    expect(isHeld(shared.edge.http.port, slow.socket.localPort ?? 0)).toBe(true)
    run.answerRest(Array.from({ length: DELTAS }, (_, i) => deltaText(run.request.runId, i)))
    const cancel = await run.untilCancelled()
    expect(cancel.code).toBe(CancelCode.SLOW_CONSUMER)
    run.halt()
    const record = await shared.edge.admin.untilRun(run.request.runId, ["failed"])
    expect(record.failure?.code).toBe("slow_consumer")
    const port = slow.socket.localPort ?? 0
    await eventually("the edge to let go of the socket", () => !isHeld(shared.edge.http.port, port))
    slow.socket.resume()
    await slow.closed
    expect((await shared.edge.admin.node("tower")).slots_in_use).toBe(0)
  })
})
