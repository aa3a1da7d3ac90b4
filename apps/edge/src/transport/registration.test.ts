// Who gets in, who does not, and who takes whose place.
import { randomBytes } from "node:crypto"
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { describe, expect, it } from "vitest"
import { type NodeBody, nodeFrame, registerBody } from "../../e2e/harness/RawNode.ts"
import { eventually, within } from "../../e2e/harness/waiting.ts"
import { dispatch, RecordingSink, startEdge, type TestEdge, tokenOf } from "../../test/transportFixture.ts"

const logText = (edge: TestEdge) => edge.log.map((line) => line.text).join("\n")

it("RG1 silent connections are closed in time", async () => {
  await using edge = await startEdge({ link: { register_timeout: "200ms" } })
  const silent = await Promise.all(Array.from({ length: 50 }, () => edge.connect()))
  const ends = await within("all ends", Promise.all(silent.map((connection) => connection.closed)))
  expect(Math.min(...ends.map((end) => end.ms))).toBeGreaterThan(150)
  expect(edge.count("registration:timeout")).toBe(50)
  expect(edge.counts()).toEqual({ links: 0, unregistered: 0 })
})

it("RG1 a thousand silent connections from one address keep no node out, not even from there", async () => {
  await using edge = await startEdge()
  const silent = await Promise.all(Array.from({ length: 1000 }, () => edge.connect()))
  // 2 nodes: 260 connections that have not registered, half of them from one address.
  await eventually("room is made", () => edge.count("connectionRefused:displaced") === 870)
  expect(edge.counts().unregistered).toBe(130)
  const node = await edge.node("tower")
  expect(node.accepted?.nodeId).toBe("tower")
  expect(silent.slice(0, 870).filter((connection) => connection.end === undefined).length).toBeLessThan(870)
  expect(edge.counts()).toEqual({ links: 1, unregistered: 129 })
})

it("RG2 a dripping RegisterRequest is closed at the same time", async () => {
  await using edge = await startEdge({ link: { register_timeout: "200ms" } })
  const node = await edge.connect()
  const bytes = nodeFrame(registerBody({ token: tokenOf("tower") }))
  let at = 0
  const drip = setInterval(() => node.sendBytes(bytes.subarray(at, ++at)), 20)
  await within("the end of the link", node.closed)
  clearInterval(drip)
  expect(at).toBeLessThan(bytes.length)
  expect(edge.count("registration:timeout")).toBe(1)
})

it("RG3 a wrong token gets the same words whatever is wrong with it, and shows nowhere", async () => {
  await using edge = await startEdge()
  const tokens = [
    "wrong-token-0123456789",
    "",
    "\u0000\u001b[31m",
    "x".repeat(10_000),
    `${tokenOf("tower")} `
  ]
  const answers = []
  for (const token of tokens) {
    const node = await edge.connect()
    const { result } = await node.handshake({ token })
    await within("the end of the link", node.closed)
    answers.push(result)
  }
  for (const answer of answers) expect(answer).toEqual(answers[0])
  expect(answers[0]?.value).toMatchObject({ code: RejectCode.UNKNOWN_TOKEN, retryable: false })
  expect(edge.count("registration:unknown_token")).toBe(tokens.length)
  expect(edge.counts()).toEqual({ links: 0, unregistered: 0 })
  expect(logText(edge)).not.toContain("wrong-token")
  expect(logText(edge)).not.toContain(tokenOf("tower"))
})

it("RG4 an address with too many wrong tokens gets no answers, but a good token gets in", async () => {
  await using edge = await startEdge({ link: { failed_tokens_per_minute: 3 } })
  const outcomes = []
  for (let attempt = 0; attempt < 8; attempt++) {
    const node = await edge.connect()
    node.send(registerBody({ token: `guess-${attempt}` }))
    await within("the end of the link", node.closed)
    outcomes.push(node.count("registerResponse"))
  }
  expect(outcomes).toEqual([1, 1, 1, 0, 0, 0, 0, 0])
  expect(edge.count("registration:throttled")).toBe(5)
  expect(edge.log.filter((line) => line.text.includes("too many wrong tokens"))).toHaveLength(1)
  const node = await edge.node("tower")
  expect(node.accepted?.nodeId).toBe("tower")
})

it("RG5 the same process connects again: the new link replaces the old, held runs go on", async () => {
  await using edge = await startEdge()
  const bootId = randomBytes(16)
  const old = await edge.node("tower", { bootId })
  const oldLink = await edge.link("tower")
  const changes: Array<string> = []
  edge.registry.watch((entry, change) =>
    changes.push(`${change} ${edge.registry.connected().includes(entry)}`)
  )
  const sink = new RecordingSink()
  let attached = 0
  edge.runs.answers.set("held", {
    resume: true,
    afterSeq: 4,
    sink,
    attach: (handle) => {
      attached = handle
      const link = edge.registry.find("tower")?.link
      link?.ack(handle, 4)
      link?.drain(1000, "asked for while registering")
    }
  })
  const fresh = await edge.node("tower", {
    bootId,
    heldRuns: [
      { runId: "held", attempt: 2, firstUnackedSeq: 5, lastSeq: 6 },
      { runId: "gone", attempt: 1, firstUnackedSeq: 1, lastSeq: 1 },
      { runId: "held", attempt: 2, firstUnackedSeq: 1, lastSeq: 6 }
    ]
  })
  await Promise.all([fresh.take("runAck"), fresh.take("drain")])
  expect(fresh.received[0]?.body.case).toBe("registerResponse")
  expect((await old.take("goodbye")).code).toBe(GoodbyeCode.REPLACED)
  await within("the end of the old link", old.closed)
  const link = await edge.link("tower")
  expect(link.epoch).toBeGreaterThan(oldLink.epoch)
  expect(fresh.accepted?.linkEpoch).toBe(BigInt(link.epoch))
  expect(edge.runs.lost).toEqual([
    { epoch: oldLink.epoch, reason: expect.stringContaining("replaced by a newer link"), mayResume: true }
  ])
  expect(edge.runs.claims.map((claim) => claim.runId)).toEqual(["held", "gone"])
  expect(fresh.accepted?.heldRuns).toMatchObject([
    { runId: "held", attempt: 2, decision: { case: "resume", value: { afterSeq: 4, handle: attached } } },
    { runId: "gone", attempt: 1, decision: { case: "cancel", value: { reason: "not known" } } }
  ])
  expect(changes).toEqual(["detached false", "attached true"])
  fresh.send({ case: "runEvent", value: { handle: attached, seq: 5, event: { case: "started", value: {} } } })
  await eventually("the event", () => sink.events.length === 1)
  expect(edge.counts().links).toBe(1)
  expect(edge.count("linkEnded:replaced")).toBe(1)
})

it("RG6 a second box with a copied token is refused as long as the first answers", async () => {
  await using edge = await startEdge()
  const incumbent = await edge.node("tower")
  const link = await edge.link("tower")
  for (let attempt = 0; attempt < 30; attempt++) {
    const copy = await edge.connect()
    const { result } = await copy.handshake({ token: tokenOf("tower") })
    expect(result.value).toMatchObject({
      code: RejectCode.ALREADY_CONNECTED,
      message: expect.stringContaining(link.remote),
      retryable: true,
      retryAfterMs: 2000
    })
    await within("the end of the copy", copy.closed)
  }
  expect(incumbent.end).toBeUndefined()
  expect(edge.registry.find("tower")?.link).toBe(link)
  expect(edge.runs.lost).toEqual([])
  expect(edge.count("registration:already_connected")).toBe(30)
  // Asked about once a second, however often newcomers come, and its answers are not held against it.
  expect(incumbent.pings).toBeLessThan(30)
})

describe("RG7 the incumbent is frozen", () => {
  it("is taken over after the probe, is told why, and its events count for nothing", async () => {
    await using edge = await startEdge({ link: { takeover_probe: "100ms" } })
    const incumbent = await edge.node("tower")
    const link = await edge.link("tower")
    const sink = new RecordingSink()
    link.sendRun(dispatch(), sink)
    const { handle } = await incumbent.take("runRequest")
    incumbent.answersPings = false
    const started = performance.now()
    const newcomer = await edge.node("tower")
    expect(performance.now() - started).toBeGreaterThan(90)
    expect((await edge.link("tower")).epoch).toBe(Number(newcomer.accepted?.linkEpoch))
    expect(edge.runs.lost).toEqual([
      { epoch: link.epoch, reason: expect.stringContaining("did not answer for 100 ms"), mayResume: false }
    ])
    const goodbye = await incumbent.take("goodbye")
    expect(goodbye.code).toBe(GoodbyeCode.TAKEN_OVER)
    expect(goodbye.message).toContain("same token")
    incumbent.send({ case: "runEvent", value: { handle, seq: 1, event: { case: "started", value: {} } } })
    await within("the end of the incumbent", incumbent.closed)
    expect(sink.calls).toEqual([])
    expect(edge.count("linkEnded:taken_over")).toBe(1)
  })

  it("lets one newcomer wait; another one is refused at once", async () => {
    await using edge = await startEdge({ link: { takeover_probe: "300ms" } })
    const incumbent = await edge.node("tower")
    incumbent.answersPings = false
    const first = await edge.connect()
    first.send(registerBody({ token: tokenOf("tower") }))
    await eventually("the probe", () => incumbent.pings > 0)
    // It showed a good token: what bounds strangers is not for it.
    expect(edge.counts()).toEqual({ links: 1, unregistered: 0 })
    const second = await edge.connect()
    const refused = await second.handshake({ token: tokenOf("tower") })
    expect(refused.result.value).toMatchObject({ code: RejectCode.ALREADY_CONNECTED })
    const admitted = await first.take("registerResponse")
    expect(admitted.result.case).toBe("accepted")
    expect(edge.counts().links).toBe(1)
  })

  it("a newer connection of the waiting process takes its place in the probe", async () => {
    await using edge = await startEdge({ link: { takeover_probe: "300ms" } })
    const incumbent = await edge.node("tower")
    incumbent.answersPings = false
    const bootId = randomBytes(16)
    const first = await edge.connect()
    first.send(registerBody({ token: tokenOf("tower"), bootId }))
    await eventually("the probe", () => incumbent.pings > 0)
    const second = await edge.connect()
    second.send(registerBody({ token: tokenOf("tower"), bootId }))
    await within("the end of the first", first.closed)
    expect(first.count("registerResponse")).toBe(0)
    expect((await second.take("registerResponse")).result.case).toBe("accepted")
  })

  it("the incumbent's own new link ends the wait of the newcomer", async () => {
    await using edge = await startEdge({ link: { takeover_probe: "10s" } })
    const bootId = randomBytes(16)
    const incumbent = await edge.node("tower", { bootId })
    incumbent.answersPings = false
    const newcomer = await edge.connect()
    newcomer.send(registerBody({ token: tokenOf("tower") }))
    await eventually("the probe", () => incumbent.pings > 0)
    const again = await edge.node("tower", { bootId })
    const { result } = await newcomer.take("registerResponse")
    expect(result.value).toMatchObject({ code: RejectCode.ALREADY_CONNECTED })
    expect(again.end).toBeUndefined()
    expect(edge.counts().links).toBe(1)
  })

  it("the end of the incumbent's link lets the newcomer in at once", async () => {
    await using edge = await startEdge({ link: { takeover_probe: "10s" } })
    const incumbent = await edge.node("tower")
    incumbent.answersPings = false
    const newcomer = await edge.connect()
    newcomer.send(registerBody({ token: tokenOf("tower") }))
    await eventually("the probe", () => incumbent.pings > 0)
    incumbent.reset()
    expect((await newcomer.take("registerResponse")).result.case).toBe("accepted")
    expect(edge.runs.lost).toMatchObject([{ reason: "reset", mayResume: true }])
  })

  it("a newcomer that leaves ends the probe", async () => {
    await using edge = await startEdge({ link: { takeover_probe: "100ms" } })
    const incumbent = await edge.node("tower")
    incumbent.answersPings = false
    const newcomer = await edge.connect()
    newcomer.send(registerBody({ token: tokenOf("tower") }))
    await eventually("the probe", () => incumbent.pings > 0)
    newcomer.reset()
    await eventually("the newcomer is gone", () => edge.count("registration:abandoned") === 1)
    incumbent.answersPings = true
    const copy = await edge.connect()
    const { result } = await copy.handshake({ token: tokenOf("tower") })
    expect(result.value).toMatchObject({ code: RejectCode.ALREADY_CONNECTED })
    expect(incumbent.end).toBeUndefined()
  })
})

it("RG8 a second RegisterRequest ends the link, identity stays", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  node.send(registerBody({ token: tokenOf("attic") }))
  const goodbye = await node.take("goodbye")
  expect(goodbye.code).toBe(GoodbyeCode.PROTOCOL_ERROR)
  expect(goodbye.message).toContain("second RegisterRequest")
  await within("the end of the link", node.closed)
  expect(edge.count("protocolError:second_register")).toBe(1)
  expect(edge.registry.connected()).toEqual([])
  expect(edge.runs.lost).toMatchObject([{ epoch: link.epoch, mayResume: true }])
  expect(edge.registry.entry("attic")?.lastDisconnect).toBeUndefined()
})

it("RG8 a second RegisterRequest while the first one waits ends the connection", async () => {
  await using edge = await startEdge({ link: { takeover_probe: "10s" } })
  const incumbent = await edge.node("tower")
  incumbent.answersPings = false
  const newcomer = await edge.connect()
  newcomer.send(registerBody({ token: tokenOf("tower") }))
  await eventually("the probe", () => incumbent.pings > 0)
  newcomer.send(registerBody({ token: tokenOf("attic") }))
  const { result } = await newcomer.take("registerResponse")
  expect(result.value).toMatchObject({ code: RejectCode.MALFORMED })
  await within("the end of the newcomer", newcomer.closed)
  expect(incumbent.end).toBeUndefined()
})

const early: ReadonlyArray<readonly [string, NodeBody]> = [
  ["RunEvent", { case: "runEvent", value: { handle: 1, seq: 1, event: { case: "started", value: {} } } }],
  ["NodeStatus", { case: "nodeStatus", value: {} }],
  ["Pong", { case: "pong", value: { nonce: 1 } }],
  ["Goodbye", { case: "goodbye", value: { code: GoodbyeCode.SHUTDOWN } }]
]

it.each(early)("RG9 %s before RegisterRequest is malformed", async (_name, body) => {
  await using edge = await startEdge()
  const victim = await edge.node("attic")
  const link = await edge.link("attic")
  const sink = new RecordingSink()
  expect(link.sendRun(dispatch(), sink)).toEqual({ handle: 1 })
  await victim.take("runRequest")
  const node = await edge.connect()
  node.send(body, registerBody({ token: tokenOf("tower") }))
  const { result } = await node.take("registerResponse")
  expect(result.value).toMatchObject({ code: RejectCode.MALFORMED, retryable: false })
  await within("the end of the link", node.closed)
  expect(node.count("registerResponse")).toBe(1)
  expect(edge.count("protocolError:not_registered")).toBe(1)
  expect(sink.calls).toEqual([])
  expect(edge.registry.find("tower")).toBeUndefined()
})

describe("RG10 protocol versions", () => {
  const withVersion = (major: number, minor: number): NodeBody => ({
    case: "registerRequest",
    value: { protocolVersion: { major, minor }, token: tokenOf("tower"), bootId: randomBytes(16) }
  })

  it.each([
    [2, 0, "edge"],
    [0, 9, "node"]
  ])("version %i.%i is refused with both numbers", async (major, minor, older) => {
    await using edge = await startEdge()
    const node = await edge.connect()
    node.send(withVersion(major, minor))
    const { result } = await node.take("registerResponse")
    expect(result.value).toMatchObject({ code: RejectCode.UNSUPPORTED_VERSION, retryable: false })
    const message = result.case === "rejected" ? result.value.message : ""
    expect(message).toContain(`speaks protocol version ${major}.${minor}, this edge speaks 1.0`)
    expect(message).toContain(`update the ${older}`)
    await within("the end of the link", node.closed)
  })

  it("a newer minor version is accepted", async () => {
    await using edge = await startEdge()
    const node = await edge.connect()
    node.send(withVersion(1, 7))
    const { result } = await node.take("registerResponse")
    expect(result).toMatchObject({ case: "accepted", value: { protocolVersion: { major: 1, minor: 0 } } })
  })
})

it("RG11 a node cannot choose who it is: its words are bounded text", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower", { agentName: `attic\n\u001b[31m${"x".repeat(10_000)}` })
  expect(node.accepted).toMatchObject({ nodeId: "tower", alias: "tower-box" })
  expect(edge.registry.find("attic")).toBeUndefined()
  const link = await edge.link("tower")
  expect(link.agent.startsWith("attic\\u{a}\\u{1b}[31mxx")).toBe(true)
  expect(link.agent.length).toBeLessThan(160)
})

it("a boot id that is not 16 bytes is malformed, and no boot id is logged", async () => {
  await using edge = await startEdge()
  const short = await edge.connect()
  const { result } = await short.handshake({ token: tokenOf("tower"), bootId: randomBytes(15) })
  expect(result.value).toMatchObject({
    code: RejectCode.MALFORMED,
    message: "the boot_id has 15 bytes, it must have 16 random ones"
  })
  const bootId = randomBytes(16)
  await edge.node("tower", { bootId })
  expect(logText(edge)).not.toContain(bootId.toString("hex"))
  expect(logText(edge)).not.toContain(bootId.toString("base64"))
})

it("RG12 a draining edge tells its nodes and refuses new ones with a retry time", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  await edge.drain(7000)
  expect(await node.take("drain")).toMatchObject({ timeoutMs: 7000, reason: "the edge is stopping" })
  const late = await edge.connect()
  const { result } = await late.handshake({ token: tokenOf("attic") })
  expect(result.value).toMatchObject({ code: RejectCode.DRAINING, retryable: true, retryAfterMs: 5000 })
  await within("the end of the late one", late.closed)
  expect(node.end).toBeUndefined()
})

it("when the edge stops, who waits for the place of a node does not get it", async () => {
  await using edge = await startEdge({ link: { takeover_probe: "10s" } })
  const incumbent = await edge.node("tower")
  incumbent.answersPings = false
  const newcomer = await edge.connect()
  newcomer.send(registerBody({ token: tokenOf("tower") }))
  await eventually("the probe", () => incumbent.pings > 0)
  await edge.stop()
  const { result } = await newcomer.take("registerResponse")
  expect(result.value).toMatchObject({ code: RejectCode.DRAINING, retryable: true })
  expect(edge.count("registration:accepted")).toBe(1)
})

it("when the edge stops every node gets a Goodbye and every connection ends within its bound", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const deaf = await edge.node("attic")
  deaf.socket.pause()
  const silent = await edge.connect()
  await edge.stop()
  expect(await node.take("goodbye")).toMatchObject({ code: GoodbyeCode.SHUTDOWN })
  await within("the ends", Promise.all([node.closed, silent.closed]))
  deaf.socket.resume()
  await within("the end of the deaf one", deaf.closed)
  expect(edge.counts()).toEqual({ links: 0, unregistered: 0 })
  expect(edge.count("linkEnded:edge_shutdown")).toBe(2)
})
