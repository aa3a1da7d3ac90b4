// Who may register, as whom, how often, and what that is worth: the rules of identity on the real process.
import { createHash, randomBytes } from "node:crypto"
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { MockNode } from "./harness/MockNode.ts"
import { type NodeBody, nodeFrame, RawNode, registerBody } from "./harness/RawNode.ts"
import { textEvent } from "./harness/RawRun.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually, inParallel, within } from "./harness/waiting.ts"

describe("an edge and those who want to register", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop")],
    link: { register_timeout: "1s", takeover_probe: "300ms", resume_grace: "300ms" }
  })

  const connect = () => RawNode.connect(shared.cleanup, shared.edge.nodes)
  const registrations = async (outcome: string) =>
    (await shared.edge.metrics()).count("iop_edge_link_registrations_total", { outcome })

  const rejection = async (node: RawNode, options: Parameters<typeof registerBody>[0]) => {
    const { result } = await node.handshake(options)
    if (result.case !== "rejected") throw new Error(`expected a rejection, came ${result.case}`)
    await within("the end of the refused link", node.closed)
    return result.value
  }

  it("RG1 a silent connection is closed when its time to register is over", async () => {
    const before = await registrations("timeout")
    const node = await connect()
    const end = await within("the end of the link", node.closed)
    expect(end.ms).toBeGreaterThan(900)
    expect(await registrations("timeout")).toBe(before + 1)
  })

  it("RG1 hundreds of silent connections do not keep a node from registering", async () => {
    const silent = await inParallel(Array.from({ length: 800 }), 50, connect)
    const node = await shared.node("tower")
    expect(node.accepted?.nodeId).toBe("tower")
    await within("the end of all silent links", Promise.all(silent.map((peer) => peer.closed)))
  })

  it("RG2 a registration that drips in is closed all the same", async () => {
    const node = await connect()
    const bytes = nodeFrame(registerBody({ token: tokenOf("tower") }))
    let at = 0
    const drip = setInterval(() => node.sendBytes(bytes.subarray(at, ++at)), 200)
    shared.cleanup.defer(() => clearInterval(drip))
    await within("the end of the link", node.closed)
    expect(at).toBeLessThan(bytes.length)
    expect((await shared.edge.admin.node("tower")).state).toBe("offline")
  })

  it("RG3 every wrong token gets the same words, and none of them is logged", async () => {
    const wrong = [
      "no-such-token-4711",
      "",
      "with spaces and \u0000 in it",
      `${tokenOf("tower")}x`,
      "x".repeat(5000)
    ]
    const answers = []
    for (const token of wrong) answers.push(await rejection(await connect(), { token }))
    for (const answer of answers) {
      expect(answer).toEqual(answers[0])
      expect(answer.code).toBe(RejectCode.UNKNOWN_TOKEN)
      expect(answer.retryable).toBe(false)
    }
    await shared.edge.logged("registration rejected")
    const log = shared.edge.stderr.join("\n")
    for (const token of wrong.filter((text) => text.length > 8)) {
      const digest = createHash("sha256").update(token)
      expect(log).not.toContain(token)
      expect(log).not.toContain(digest.copy().digest("hex"))
      expect(log).not.toContain(digest.digest("base64"))
    }
  })

  it("RG3 a node with a wrong token says so and tries again slowly", async () => {
    const token = "a-token-that-nobody-knows-0815"
    const node = new MockNode(shared.cleanup, { edge: shared.edge.nodes, token })
    const line = await node.line("the refusal", (text) => (text.includes("unknown_token") ? text : undefined))
    expect(line).toMatch(/slowly/)
    expect(node.stderr.join("\n")).not.toContain(token)
  })

  it("RG4 a flood of wrong tokens is throttled, a good token from the same address is not", async () => {
    const before = await registrations("throttled")
    const flood = inParallel(Array.from({ length: 300 }), 20, async (_, i) => {
      const node = await connect()
      node.send(registerBody({ token: `guess-${i}-of-a-flood` }))
      await within("the end of a guess", node.closed)
    })
    const node = await shared.node("tower")
    expect(node.accepted?.nodeId).toBe("tower")
    await flood
    expect((await registrations("throttled")) - before).toBeGreaterThanOrEqual(280)
    expect(shared.edge.stderr.filter((line) => line.includes("guess-"))).toEqual([])
  })

  it("RG5 the same process replaces its link at once and goes on with its runs", async () => {
    const bootId = randomBytes(16)
    const token = tokenOf("tower")
    const offers = { mock: ["echo"] }
    const first = await shared.edge.node(shared.cleanup, { id: "tower", token, bootId, offers })
    const stream = await shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x" })
    const run = await first.nextRun()
    run.started().delta("before ")
    await stream.until("delta")
    const second = await RawNode.connect(shared.cleanup, shared.edge.nodes)
    const { result } = await second.handshake({ token, bootId, heldRuns: [run.held] })
    if (result.case !== "accepted") throw new Error("the new link was refused")
    const goodbye = await first.take("goodbye")
    expect(goodbye.code).toBe(GoodbyeCode.REPLACED)
    await within("the end of the old link", first.closed)
    const decision = result.value.heldRuns[0]?.decision
    if (decision?.case !== "resume") throw new Error("the held run was not resumed")
    second.status(offers)
    const nodes = await shared.edge.admin.nodes()
    expect(nodes.filter((node) => node.id === "tower").map((node) => node.epoch)).toEqual([
      Number(result.value.linkEpoch)
    ])
    expect((await shared.edge.admin.node("tower")).slots_in_use).toBe(1)
    second.resumeRun(run, decision.value.handle, decision.value.afterSeq)
    run.delta("after").completed()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("before after")
  })

  it("RG6 a second box with a copied token is refused with the address of the first, which notices nothing", async () => {
    const incumbent = await shared.node("tower")
    const stream = await shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x" })
    const run = await incumbent.nextRun()
    run.started().delta("one ")
    for (let i = 0; i < 5; i++) {
      const answer = await rejection(await connect(), { token: tokenOf("tower") })
      expect(answer.code).toBe(RejectCode.ALREADY_CONNECTED)
      expect(answer.message).toContain(`127.0.0.1:${incumbent.localPort}`)
    }
    run.delta("two").completed()
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("one two")
    expect(incumbent.end).toBeUndefined()
    expect(incumbent.count("goodbye")).toBe(0)
  })

  it("RG7 a frozen incumbent is taken over, its run ends, and it is told why when it wakes", async () => {
    const frozen = new MockNode(shared.cleanup, { edge: shared.edge.nodes, token: tokenOf("tower") })
    await shared.edge.admin.untilNode("tower", "routable")
    const stream = await shared.edge.admin.stream({
      adapter: "mock",
      target: "echo",
      prompt: 'never to be finished {"interval_ms": 200, "size": 1}'
    })
    await stream.until("delta")
    frozen.signal("SIGSTOP")
    const newcomer = await shared.edge.node(shared.cleanup, {
      id: "tower",
      token: tokenOf("tower"),
      offers: { mock: ["echo"] }
    })
    expect((await stream.finish()).code).toBe("node_lost")
    const length = stream.events.length
    frozen.signal("SIGCONT")
    await frozen.line(
      "why it lost its place",
      (line) => line.includes("took over") || line.includes("took its place")
    )
    expect(newcomer.end).toBeUndefined()
    expect(stream.events.length).toBe(length)
    expect((await shared.edge.admin.run(stream.runId)).phase).toBe("failed")
  })

  it("RG8 a second RegisterRequest on a link ends it", async () => {
    const node = await shared.node("tower")
    node.send(registerBody({ token: tokenOf("laptop") }))
    const goodbye = await node.take("goodbye")
    expect(goodbye.code).toBe(GoodbyeCode.PROTOCOL_ERROR)
    await within("the end of the link", node.closed)
    expect((await shared.edge.admin.node("laptop")).state).toBe("offline")
  })

  it.each([
    ["RunEvent", { case: "runEvent", value: { handle: 1, seq: 1, event: textEvent("forged") } }],
    ["NodeStatus", { case: "nodeStatus", value: { configRevision: "r", adapters: [] } }],
    ["Pong", { case: "pong", value: { nonce: 1 } }]
  ] satisfies ReadonlyArray<readonly [string, NodeBody]>)(
    "RG9 a %s before the registration is malformed, closed and seen by no run",
    async (_name, body) => {
      const before = await registrations("malformed")
      const victim = await shared.node("tower")
      const stream = await shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x" })
      const run = await victim.nextRun()
      const node = await connect()
      node.send(body)
      const { result } = await node.take("registerResponse")
      expect(result.case === "rejected" && result.value.code).toBe(RejectCode.MALFORMED)
      await within("the end of the link", node.closed)
      expect(await registrations("malformed")).toBe(before + 1)
      run.answer("untouched")
      await stream.finish()
      expect(stream.text).toBe("untouched")
    }
  )

  it("RG10 another major version is refused with both numbers, a newer minor one is welcome", async () => {
    const token = tokenOf("tower")
    const answer = await rejection(await connect(), { token, version: { major: 9, minor: 4 } })
    expect(answer.code).toBe(RejectCode.UNSUPPORTED_VERSION)
    expect(answer.message).toMatch(/9\.4.*1\.\d/)
    expect(answer.retryable).toBe(false)
    const newer = await connect()
    const { result } = await newer.handshake({ token, version: { major: 1, minor: 99 } })
    expect(result.case).toBe("accepted")
  })

  it("RG11 an agent's name gives it nobody else's identity", async () => {
    await RawNode.register(shared.cleanup, shared.edge.nodes, {
      token: tokenOf("tower"),
      agentName: "laptop"
    })
    expect((await shared.edge.admin.node("tower")).agent).toContain("laptop")
    expect((await shared.edge.admin.node("laptop")).state).toBe("offline")
  })

  describe("RG13 joined is not routable", () => {
    const verdict = async () => {
      const { chosen, nodes } = await shared.edge.admin.explain("mock", "echo")
      return { chosen, tower: nodes.find(({ node }) => node === "tower") }
    }

    // What, how, the node's state, the reason's code and words, and what becomes of a run.
    const states: ReadonlyArray<readonly [string, (node: RawNode) => void, string, string, RegExp, string]> =
      [
        ["no configuration applied", () => undefined, "joining", "config_pending", /config/i, "run_timeout"],
        [
          "an older revision applied",
          (node) => node.status({ mock: ["echo"] }, { revision: "older" }),
          "joining",
          "config_pending",
          /config/i,
          "run_timeout"
        ],
        [
          "an adapter that starts",
          (node) =>
            node.status({ mock: ["echo"] }, { state: AdapterState.STARTING, reason: "loading weights" }),
          "unavailable",
          "adapter_starting",
          /start/i,
          "run_timeout"
        ],
        [
          "an adapter that is degraded",
          (node) => node.status({ mock: ["echo"] }, { state: AdapterState.DEGRADED, reason: "gpu fell off" }),
          "unavailable",
          "adapter_degraded",
          /gpu fell off/i,
          "no_node_available"
        ]
      ]

    it.each(states)("RG13 with %s", async (_what, act, state, reason, words, outcome) => {
      const node = await RawNode.register(shared.cleanup, shared.edge.nodes, { token: tokenOf("tower") })
      act(node)
      await shared.edge.admin.untilNode("tower", state)
      // The status is on its way while the node is in the same state without it.
      await eventually("the reason", async () => (await verdict()).tower?.reason === reason)
      const { chosen, tower } = await verdict()
      expect(chosen).toBeUndefined()
      expect(tower?.message).toMatch(words)
      const refused = await shared.edge.admin
        .stream({ adapter: "mock", target: "echo", prompt: "x", timeout_ms: 200 })
        .then((stream) => stream.finish().then((end) => end.code))
        .catch((error: { problem?: { code: string } }) => error.problem?.code)
      expect(refused).toBe(outcome)
      expect(node.count("runRequest")).toBe(0)
      node.status({ mock: ["echo"] })
      await shared.edge.admin.untilNode("tower", "routable")
      expect((await verdict()).chosen).toBe("tower-alias")
    })
  })
})
