// What a peer can do to the framing, on the real process: it ends its own link, is counted and named in the log, and
// costs nobody else anything.
import { readdirSync } from "node:fs"
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { mutateFrame } from "./harness/mutateFrame.ts"
import { Random } from "./harness/Random.ts"
import { frameOf, type NodeBody, nodeFrame, RawNode, registerBody } from "./harness/RawNode.ts"
import { type EventInit, textEvent } from "./harness/RawRun.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually, inParallel, within } from "./harness/waiting.ts"

const header = (length: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}

const KIB = 1024

describe("an edge that is sent broken frames", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop"), mockNodeConfig("fuzz")],
    link: { register_timeout: "1s", heartbeat_interval: "500ms", resume_grace: "300ms" }
  })

  const connect = () => RawNode.connect(shared.cleanup, shared.edge.nodes)
  const protocolErrors = async (kind: string) =>
    (await shared.edge.metrics()).count("iop_edge_link_protocol_errors_total", { kind })

  /** Does something on a link of each kind and expects it to end with this protocol error, counted once. */
  const endsWith = async (kind: string, act: (node: RawNode) => void, registered: boolean) => {
    const before = await protocolErrors(kind)
    const node = registered ? await shared.node("tower") : await connect()
    act(node)
    await within("the end of the link", node.closed)
    await eventually(`a counted ${kind}`, async () => (await protocolErrors(kind)) === before + 1)
    if (registered) await shared.edge.admin.untilNode("tower", "offline")
    return node
  }

  it.each([
    ["64 KiB + 1 before registration", 64 * KIB + 1, false],
    ["0xFFFFFFFF before registration", 0xffffffff, false],
    ["the limit + 1 after it", 1024 * KIB + 1, true],
    ["0xFFFFFFFF after it", 0xffffffff, true]
  ])("FR1 a length over the limit, %s, ends the link at its header", async (_what, length, registered) => {
    const node = await endsWith("frame_too_large", (peer) => peer.sendBytes(header(length)), registered)
    const port = node.localPort
    const line = await shared.edge.line("a line with the peer and the declared size", (text) =>
      text.includes(`127.0.0.1:${port}`) && text.includes(String(length)) ? text : undefined
    )
    expect(line).toContain("frame")
  })

  // Before the floods: lines about strangers are limited, and these must not be among those left out.
  it.each([
    [
      "an HTTP request",
      Buffer.from("GET / HTTP/1.1\r\nHost: edge\r\n\r\n"),
      "peer speaks HTTP on the node port"
    ],
    ["a TLS ClientHello", Buffer.from("160301020001000001fc0303", "hex"), "peer speaks TLS on the node port"],
    ["an SSH banner", Buffer.from("SSH-2.0-OpenSSH_9.6\r\n"), "peer speaks SSH on the node port"]
  ])("FR7 %s is closed and named in the log", async (_what, bytes, words) => {
    const node = await connect()
    node.sendBytes(bytes)
    await within("the end of the link", node.closed, 5_000)
    await shared.edge.line(words, (line) => line.includes(words))
  })

  it("FR1 a declared length allocates nothing", async () => {
    const before = shared.edge.memory
    await inParallel(Array.from({ length: 50 }), 10, async () => {
      const node = await connect()
      node.sendBytes(header(0xffffffff))
      await within("the end of the link", node.closed)
    })
    expect(shared.edge.memory - before).toBeLessThan(64 * KIB * KIB)
  })

  it.each([
    ["before registration", false],
    ["after it", true]
  ])("FR2 a zero length ends the link %s", async (_when, registered) => {
    await endsWith("frame_empty", (node) => node.sendBytes(header(0)), registered)
  })

  it("FR2 a stream of zero headers is one error, not a spin", async () => {
    await endsWith("frame_empty", (node) => node.sendBytes(Buffer.alloc(64 * KIB)), false)
    expect(await shared.edge.admin.status("/healthz")).toBe(200)
  })

  it.each([
    ["before registration", false],
    ["after it", true]
  ])(
    "FR3 a truncated frame and a FIN %s is dispatched nowhere and told as truncated",
    async (_when, registered) => {
      await endsWith(
        "truncated",
        (node) => {
          node.sendBytes(nodeFrame({ case: "pong", value: { nonce: 7 } }).subarray(0, 5))
          node.close()
        },
        registered
      )
      if (registered) {
        const { last_disconnect } = await shared.edge.admin.node("tower")
        expect(last_disconnect?.reason).toMatch(/truncated|inside a frame/)
      }
    }
  )

  it("FR4 bytes of a first frame do not prolong the time to register", async () => {
    const node = await connect()
    const bytes = nodeFrame(registerBody({ token: tokenOf("tower") }))
    let at = 0
    const drip = setInterval(() => node.sendBytes(bytes.subarray(at, ++at)), 100)
    shared.cleanup.defer(() => clearInterval(drip))
    const end = await within("the end of the link", node.closed)
    // The clock is the edge's; it began within a moment of ours.
    expect(end.ms).toBeGreaterThan(900)
    expect(at).toBeLessThan(bytes.length)
  })

  it("FR4 an unfinished frame is no sign of life", async () => {
    const node = await shared.node("tower")
    node.answersPings = false
    const bytes = nodeFrame({
      case: "nodeStatus",
      value: { configRevision: "x".repeat(2000), adapters: [] }
    })
    let at = 0
    const drip = setInterval(() => node.sendBytes(bytes.subarray(at, ++at)), 50)
    shared.cleanup.defer(() => clearInterval(drip))
    await within("the end of the link", node.closed)
    const { last_disconnect } = await shared.edge.admin.untilNode("tower", "offline")
    expect(last_disconnect?.reason).toMatch(/heartbeats missed/)
    expect(at).toBeLessThan(bytes.length)
  })

  it("FR6 a thousand frames in one write are all handled, in order, and health answers meanwhile", async () => {
    const node = await shared.node("tower")
    const stream = await shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: "go" })
    const run = await node.nextRun()
    const texts = Array.from({ length: 998 }, (_, i) => `${i} `)
    const health = shared.edge.admin.status("/healthz")
    run.answer(...texts)
    expect(await within("/healthz", health, 5_000)).toBe(200)
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe(texts.join(""))
  })

  it("FR7 random kilobytes are closed, each link by itself", async () => {
    const random = new Random(7)
    await inParallel(
      Array.from({ length: 500 }, () => random.bytes(KIB)),
      20,
      async (bytes) => {
        const node = await connect()
        node.sendBytes(bytes)
        await within("the end of the link", node.closed, 10_000)
      }
    )
  })

  it.each([
    ["before registration", false],
    ["after it", true]
  ])("FR10 ten thousand nested groups %s end the link and no stack", async (_when, registered) => {
    // Field 100, wire type 3: a group that nobody knows, in a group that nobody knows, ...
    const nested = frameOf(Buffer.concat(Array.from({ length: 10_000 }, () => Buffer.from([0xa3, 0x06]))))
    const node = registered ? await shared.node("tower") : await connect()
    node.sendBytes(nested)
    await within("the end of the link", node.closed)
    expect(shared.edge.stderr.join("\n")).not.toContain("Maximum call stack")
  })

  it("FR8 an unknown or empty body is ignored and counted after registration, and malformed before it", async () => {
    const bodies = [frameOf(Buffer.from([0x7a, 0x00])), frameOf(Buffer.from([0xa2, 0x06, 0x01, 0x00]))]
    const count = async () => (await shared.edge.metrics()).count("iop_edge_link_unknown_bodies_total")
    const before = await count()
    const node = await shared.node("tower")
    for (const body of bodies) node.sendBytes(body)
    await eventually("both to be counted", async () => (await count()) === before + bodies.length)
    expect(node.end).toBeUndefined()
    for (const body of bodies) {
      const stranger = await connect()
      stranger.sendBytes(body)
      const { result } = await stranger.take("registerResponse")
      expect(result.case === "rejected" && result.value.code).toBe(RejectCode.MALFORMED)
      await within("the end of the link", stranger.closed)
    }
  })

  it("FR11 a string that is no UTF-8 ends the link, and no replacement character is shown to anybody", async () => {
    const frame = nodeFrame({
      case: "runEvent",
      value: {
        handle: 1,
        seq: 1,
        event: { case: "delta", value: { content: { case: "text", value: "abcd" } } }
      }
    })
    frame.write("\xff\xfe", frame.indexOf("abcd"), "latin1")
    const node = await shared.node("tower")
    node.sendBytes(frame)
    expect((await node.take("goodbye")).code).toBe(GoodbyeCode.PROTOCOL_ERROR)
    await within("the end of the link", node.closed)
  })

  it("FR13 a frame that only the edge may send is no frame of a node", async () => {
    // EdgeFrame { ping { nonce: 1 } }
    const ping = frameOf(Buffer.from([0x8a, 0x01, 0x02, 0x08, 0x01]))
    await endsWith("wrong_direction", (node) => node.sendBytes(ping), true)
    await endsWith("wrong_direction", (node) => node.sendBytes(ping), false)
  })

  it("FR12 mutated frames over fresh links do no harm and leave no descriptor behind", async () => {
    const random = new Random(12)
    const bootId = random.bytes(16)
    const register: NodeBody = registerBody({ token: tokenOf("fuzz"), bootId })
    const golden = [
      register,
      { case: "pong", value: { nonce: 300 } },
      { case: "goodbye", value: { code: 1, message: "until later" } },
      {
        case: "nodeStatus",
        value: {
          configRevision: "r",
          adapters: [{ name: "mock", state: 2, targets: [{ name: "echo", capabilities: ["chat"] }] }]
        }
      },
      {
        case: "runEvent",
        value: {
          handle: 1,
          seq: 1,
          event: { case: "delta", value: { content: { case: "text", value: "text" } } }
        }
      },
      {
        case: "runEvent",
        value: { handle: 1, seq: 2, event: { case: "completed", value: { finishReason: 1 } } }
      }
    ] satisfies ReadonlyArray<NodeBody>
    const frames = golden.map(nodeFrame)
    const descriptors = () => readdirSync(`/proc/${shared.edge.pid}/fd`).length
    const before = descriptors()
    let sent = 0
    await inParallel(Array.from({ length: 3000 }), 8, async () => {
      const node = await connect()
      if (random.next() < 0.7) node.send(register)
      for (let i = 0; i < 10; i++) node.sendBytes(mutateFrame(random.pick(frames), frames, random))
      sent += 10
      node.close()
      await within("the end of the link", node.closed, 10_000)
    })
    expect(sent).toBe(30_000)
    await eventually("all descriptors to be given back", () => descriptors() <= before + 2)
  })

  it("FR12 mutated events of a run that goes on end it exactly once, whatever they say", async () => {
    const random = new Random(1212)
    const bootId = random.bytes(16)
    const offers = { mock: ["echo"] }
    const options = { id: "fuzz", token: tokenOf("fuzz"), bootId, offers }
    const ends = new Map<string, number>()
    for (let i = 0; i < 400; i++) {
      const node = await shared.edge.node(shared.cleanup, options)
      const stream = await shared.edge.admin.stream({
        adapter: "mock",
        target: "echo",
        prompt: "x"
      })
      const run = await node.nextRun()
      run.onCancel = () => run.stopped()
      run.started().delta("whole ")
      const next: ReadonlyArray<EventInit> = [
        textEvent("and sound"),
        { case: "usage", value: { inputTokens: 3, outputTokens: 70_000 } },
        { case: "completed", value: { finishReason: 1, choiceFinishReasons: { 1: 2 } } },
        { case: "failed", value: { code: 1, message: "out of memory", retryable: true } }
      ]
      const frames = next.map((event) =>
        nodeFrame({ case: "runEvent", value: { handle: run.handle, seq: 3, event } })
      )
      node.sendBytes(mutateFrame(random.pick(frames), frames, random))
      // Whatever became of that: this is the end of the run, or a number that does not fit and ends it too.
      run.forge(3, { case: "completed", value: { finishReason: 1 } })
      run.forge(4, { case: "completed", value: { finishReason: 1 } })
      // The edge has read all that when it answers this.
      await shared.edge.admin.status("/healthz")
      // A new link of the same process that holds nothing: a run that still goes on over the old one is over.
      await RawNode.register(shared.cleanup, shared.edge.nodes, { token: options.token, bootId })
      const end = await stream.finish()
      const outcome = end.code ?? end.type
      ends.set(outcome, (ends.get(outcome) ?? 0) + 1)
      expect(stream.text.startsWith("whole ") || stream.text === "").toBe(true)
    }
    // Some went through, some ended the run, some the link.
    expect([...ends.keys()].sort()).toEqual(
      expect.arrayContaining(["completed", "node_lost", "protocol_error"])
    )
    expect(ends.get("internal")).toBeUndefined()
  })
})
