// Bytes that are not what the protocol says, on a real port.
import { randomBytes } from "node:crypto"
import { create, toBinary } from "@bufbuild/protobuf"
import { BinaryWriter } from "@bufbuild/protobuf/wire"
import { EdgeFrameSchema, GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { describe, expect, it } from "vitest"
import { frameOf, type NodeBody, nodeFrame, type RawNode, registerBody } from "../../e2e/harness/RawNode.ts"
import { eventually, within } from "../../e2e/harness/waiting.ts"
import { dispatch, RecordingSink, startEdge, type TestEdge, tokenOf } from "../../test/transportFixture.ts"

const header = (length: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}

const delta = (handle: number, seq: number, text: string): NodeBody => ({
  case: "runEvent",
  value: { handle, seq, event: { case: "delta", value: { content: { case: "text", value: text } } } }
})

/** The edge goes on: a fresh node registers. */
const expectAlive = async (edge: TestEdge) => {
  const node = await edge.node("attic")
  expect(node.accepted?.nodeId).toBe("attic")
}

const logText = (edge: TestEdge) => edge.log.map((line) => line.text).join("\n")

describe.each([
  ["FR1 before registration, one byte over 64 KiB", false, 64 * 1024 + 1],
  ["FR1 before registration, 4 GiB", false, 0xffff_ffff],
  ["FR1 after registration, one byte over 1 MiB", true, 1024 * 1024 + 1],
  ["FR1 after registration, 4 GiB", true, 0xffff_ffff]
])("%s", (_title, registered, length) => {
  it("ends the link on the fourth byte of the header, with one counted error", async () => {
    await using edge = await startEdge()
    const node = registered ? await edge.node("tower") : await edge.connect()
    node.sendBytes(header(length))
    await within("the end of the link", node.closed)
    expect(edge.count("protocolError:frame_too_large")).toBe(1)
    const lines = edge.log.filter((line) => line.text.includes(`declared a frame of ${length} bytes`))
    expect(lines).toHaveLength(1)
    expect(lines[0]?.text).toContain("127.0.0.1:")
    await expectAlive(edge)
  })
})

it("FR1 a frame of exactly the limit is read", async () => {
  await using edge = await startEdge({ link: { max_node_frame: "200KiB" } })
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  const sink = new RecordingSink()
  link.sendRun(dispatch(), sink)
  const { handle } = await node.take("runRequest")
  const empty = nodeFrame(delta(handle, 1, "x".repeat(20_000))).length - 4
  node.send(delta(handle, 1, "x".repeat(20_000 + 200 * 1024 - empty)))
  await eventually("the event", () => sink.events.length === 1)
  expect(sink.bytes).toBe(200 * 1024)
})

describe.each([
  ["before", false],
  ["after", true]
])("FR2 a frame of length 0 %s registration", (_when, registered) => {
  it("ends the link, however many follow", async () => {
    await using edge = await startEdge()
    const node = registered ? await edge.node("tower") : await edge.connect()
    node.sendBytes(Buffer.alloc(64 * 1024))
    await within("the end of the link", node.closed)
    expect(edge.count("protocolError:frame_empty")).toBe(1)
    await expectAlive(edge)
  })
})

it("FR3 a truncated frame and FIN: nothing is dispatched, the link ends as truncated", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  const sink = new RecordingSink()
  link.sendRun(dispatch(), sink)
  const { handle } = await node.take("runRequest")
  const frame = nodeFrame(delta(handle, 1, "half of this"))
  node.sendBytes(frame.subarray(0, frame.length - 3))
  node.close()
  await within("the end of the link", node.closed)
  await eventually("the loss", () => edge.runs.lost.length === 1)
  expect(sink.calls).toEqual([])
  expect(edge.runs.lost[0]).toEqual({
    epoch: link.epoch,
    reason: "closed by the node inside a frame",
    mayResume: true
  })
  expect(edge.count("linkEnded:truncated")).toBe(1)
  expect(edge.count("protocolError:truncated")).toBe(1)
})

it("FR4 a truncated frame and silence before registration: the clock is absolute", async () => {
  await using edge = await startEdge({ link: { register_timeout: "200ms" } })
  const node = await edge.connect()
  const frame = nodeFrame(registerBody({ token: tokenOf("tower") }))
  node.sendBytes(frame.subarray(0, 20))
  const end = await within("the end of the link", node.closed)
  expect(end.ms).toBeGreaterThan(150)
  expect(edge.count("registration:timeout")).toBe(1)
})

it("FR4 an unfinished frame after registration is no sign of life", async () => {
  await using edge = await startEdge({ link: { heartbeat_interval: "40ms" } })
  const node = await edge.node("tower")
  node.answersPings = false
  node.sendBytes(header(1000))
  const drip = setInterval(() => node.sendBytes(Buffer.from([1])), 10)
  const goodbye = await node.take("goodbye")
  clearInterval(drip)
  expect(goodbye.code).toBe(GoodbyeCode.HEARTBEAT)
  await eventually("the loss", () => edge.runs.lost.length === 1)
  expect(edge.runs.lost[0]).toMatchObject({ reason: "heartbeats missed for 0 s", mayResume: true })
  expect(edge.registry.entry("tower")?.lastDisconnect?.reason).toBe("heartbeats missed for 0 s")
})

/** A registration that resumes a run, and one frame of every other kind. */
const session = (bootId: Uint8Array, handle: number): Buffer =>
  Buffer.concat(
    [
      registerBody({
        token: tokenOf("tower"),
        bootId,
        heldRuns: [{ runId: "run-9", attempt: 1, firstUnackedSeq: 1, lastSeq: 2 }]
      }),
      {
        case: "nodeStatus" as const,
        value: {
          configRevision: "r",
          adapters: [
            { name: "mock", state: AdapterState.DEGRADED, reason: "warming", targets: [{ name: "echo" }] }
          ]
        }
      },
      {
        case: "runEvent" as const,
        value: { handle, seq: 1, event: { case: "started" as const, value: {} } }
      },
      delta(handle, 2, "naïve 😀 text"),
      { case: "pong" as const, value: { nonce: 7 } },
      { case: "goodbye" as const, value: { code: GoodbyeCode.SHUTDOWN, message: "bye" } }
    ].map(nodeFrame)
  )

const replay = async (edge: TestEdge, node: RawNode, write: (bytes: Buffer) => void, handle: number) => {
  const sink = new RecordingSink()
  let attached = 0
  edge.runs.answers.set("run-9", {
    resume: true,
    afterSeq: 0,
    sink,
    attach: (given) => {
      attached = given
    }
  })
  const seen: Array<string> = []
  const unwatch = edge.registry.watch((entry, change) => {
    const status = entry.status?.adapters.get("mock")
    seen.push(change === "status" ? `status ${status?.state} ${status?.reason}` : change)
  })
  write(session(randomBytes(16), handle))
  await within("the end of the link", node.closed)
  await eventually("the loss", () => seen.includes("detached"))
  unwatch()
  expect(attached).toBe(handle)
  expect(sink.events).toEqual(["1 started", "2 delta naïve 😀 text"])
  expect(seen).toEqual(["attached", "status degraded warming", "detached"])
  expect(edge.registry.entry("tower")?.lastDisconnect?.reason).toBe("the node stopped: bye")
}

it("FR5 a session cut at every byte is the same session", async () => {
  await using edge = await startEdge()
  const { length } = session(randomBytes(16), 1)
  for (let cut = 1; cut < length; cut++) {
    const node = await edge.connect()
    await replay(
      edge,
      node,
      (bytes) => {
        node.sendBytes(bytes.subarray(0, cut))
        // The next turn of this process: the two parts are two writes, and most often two reads.
        setImmediate(() => node.sendBytes(bytes.subarray(cut)))
      },
      cut
    )
  }
})

it("FR5 a session written byte by byte is the same session", async () => {
  await using edge = await startEdge()
  const node = await edge.connect()
  await replay(
    edge,
    node,
    (bytes) => {
      let at = 0
      const next = () => {
        if (at < bytes.length) node.socket.write(bytes.subarray(at, ++at), () => setImmediate(next))
      }
      next()
    },
    1
  )
})

it("FR6 a thousand frames in one write are all handled, in order", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const link = await edge.link("tower")
  const sink = new RecordingSink()
  link.sendRun(dispatch(), sink)
  const { handle } = await node.take("runRequest")
  const frames = Array.from({ length: 1000 }, (_, index) => nodeFrame(delta(handle, index + 1, `t${index}`)))
  node.sendBytes(
    Buffer.concat([...frames, ...Array.from({ length: 1000 }, () => nodeFrame({ case: "pong", value: {} }))])
  )
  await eventually("all events", () => sink.events.length === 1000)
  expect(sink.events).toEqual(frames.map((_, index) => `${index + 1} delta t${index}`))
  // Woken once per read, not once per event.
  expect(sink.calls.length - sink.events.length).toBeLessThan(100)
  expect(edge.counts().links).toBe(1)
})

it.each([
  [
    "an HTTP request",
    Buffer.from("GET / HTTP/1.1\r\nhost: edge\r\n\r\n"),
    "peer speaks HTTP on the node port"
  ],
  [
    "a TLS ClientHello",
    Buffer.concat([Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]), randomBytes(500)]),
    "peer speaks TLS on the node port"
  ],
  ["an SSH banner", Buffer.from("SSH-2.0-OpenSSH_9.6\r\n"), "peer speaks SSH on the node port"]
])("FR7 %s is named in words", async (_what, bytes, words) => {
  await using edge = await startEdge()
  const node = await edge.connect()
  node.sendBytes(bytes)
  await within("the end of the link", node.closed)
  await eventually("the log line", () => logText(edge).includes(words))
  await expectAlive(edge)
})

it("FR7 random bytes end their links and nothing else", async () => {
  await using edge = await startEdge({ link: { register_timeout: "200ms" } })
  const links = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const node = await edge.connect()
      node.sendBytes(randomBytes(100 * 1024))
      return node
    })
  )
  await within("all ends", Promise.all(links.map((node) => node.closed)))
  await eventually("no connection is left", () => edge.counts().unregistered === 0)
  expect(logText(edge)).not.toContain("inside the edge")
  await expectAlive(edge)
})

describe("FR8 a body that nobody knows", () => {
  const unknown = frameOf(
    new BinaryWriter()
      .tag(40, 2)
      .bytes(new Uint8Array([1, 2, 3]))
      .finish()
  )

  it("is ignored and counted after registration", async () => {
    await using edge = await startEdge()
    const node = await edge.node("tower")
    node.sendBytes(unknown)
    node.status({ mock: ["echo"] })
    await eventually("the status behind it", () => edge.registry.find("tower")?.status)
    expect(edge.count("unknownBody")).toBe(1)
    expect(edge.counts().links).toBe(1)
  })

  it("is malformed as the first frame", async () => {
    await using edge = await startEdge()
    const node = await edge.connect()
    node.sendBytes(unknown)
    const { result } = await node.take("registerResponse")
    expect(result.value).toMatchObject({
      code: RejectCode.MALFORMED,
      message: "the first frame of a node has to be its RegisterRequest",
      retryable: false
    })
    await within("the end of the link", node.closed)
    expect(edge.count("registration:malformed")).toBe(1)
  })
})

it("FR9 unknown fields are ignored and counted, and reach no other node", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const other = await edge.node("attic")
  const mark = "unknown-field-mark"
  const target = new BinaryWriter().tag(1, 2).string("echo").tag(77, 2).string(mark).finish()
  const adapter = new BinaryWriter()
    .tag(1, 2)
    .string("mock")
    .tag(2, 0)
    .int32(AdapterState.READY)
    .tag(4, 2)
    .bytes(target)
    .finish()
  const status = new BinaryWriter().tag(2, 2).bytes(adapter).tag(78, 2).string(mark).finish()
  node.sendBytes(frameOf(new BinaryWriter().tag(2, 2).bytes(status).finish()))
  const seen = await eventually("the status", () => edge.registry.find("tower")?.status)
  expect(seen.adapters.get("mock")?.targets).toEqual([{ name: "echo", capabilities: [] }])
  expect(edge.count("unknownFields")).toBe(2)
  const link = await edge.link("attic")
  link.sendRun(dispatch(), new RecordingSink())
  await other.take("runRequest")
  const bytes = other.received.map((frame) =>
    Buffer.from(toBinary(EdgeFrameSchema, frame)).toString("latin1")
  )
  expect(bytes.join("")).not.toContain(mark)
})

it("FR10 ten thousand nested groups are a decode error", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const writer = new BinaryWriter()
  for (let depth = 0; depth < 10_000; depth++) writer.tag(100, 3)
  for (let depth = 0; depth < 10_000; depth++) writer.tag(100, 4)
  node.sendBytes(frameOf(writer.finish()))
  const goodbye = await node.take("goodbye")
  expect(goodbye.code).toBe(GoodbyeCode.PROTOCOL_ERROR)
  await within("the end of the link", node.closed)
  expect(edge.count("protocolError:too_deep")).toBe(1)
  await expectAlive(edge)
})

it("FR11 invalid UTF-8 ends the link", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower")
  const status = new BinaryWriter()
    .tag(1, 2)
    .bytes(new Uint8Array([0xff, 0xfe, 0x41]))
    .finish()
  node.sendBytes(frameOf(new BinaryWriter().tag(2, 2).bytes(status).finish()))
  const goodbye = await node.take("goodbye")
  expect(goodbye.code).toBe(GoodbyeCode.PROTOCOL_ERROR)
  expect(goodbye.message).toContain("UTF-8")
  expect(edge.count("protocolError:invalid_utf8")).toBe(1)
  expect(edge.registry.entry("tower")?.status).toBeUndefined()
})

it.each([
  ["before", false],
  ["after", true]
])("FR13 a frame of the edge is malformed %s registration", async (_when, registered) => {
  await using edge = await startEdge()
  const node = registered ? await edge.node("tower") : await edge.connect()
  const frame = create(EdgeFrameSchema, { body: { case: "ping", value: { nonce: 1 } } })
  node.sendBytes(frameOf(toBinary(EdgeFrameSchema, frame)))
  if (registered) expect((await node.take("goodbye")).code).toBe(GoodbyeCode.PROTOCOL_ERROR)
  else
    expect((await node.take("registerResponse")).result.value).toMatchObject({ code: RejectCode.MALFORMED })
  await within("the end of the link", node.closed)
  expect(edge.count("protocolError:wrong_direction")).toBe(1)
})
