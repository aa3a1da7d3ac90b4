// Peers that mean harm or are broken, many at once: what stays is an edge without leftovers that takes the next node.
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { connect } from "node:net"
import { connect as connectTls } from "node:tls"
import { makeTestCertificates } from "@iop/proto-socket/testing/certificates"
import { Effect, Exit, Scope } from "effect"
import { expect, it } from "vitest"
import { type NodeBody, nodeFrame, registerBody } from "../../e2e/harness/RawNode.ts"
import { eventually, within } from "../../e2e/harness/waiting.ts"
import { startEdge, type TestEdge, tokenOf } from "../../test/transportFixture.ts"

const expectNothingLeft = async (edge: TestEdge) => {
  await eventually("no link or connection is left", () => {
    const { links, unregistered } = edge.counts()
    return links === 0 && unregistered === 0
  })
  expect(edge.log.filter((line) => line.text.includes("inside the edge"))).toEqual([])
  const node = await edge.node("tower")
  expect(node.accepted?.nodeId).toBe("tower")
}

/** A small generator with a seed, so that a failure can be had again. */
const mulberry = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}

it("FR12 mutated sessions end their own links and leave nothing behind", async () => {
  await using edge = await startEdge({
    link: { register_timeout: "300ms", failed_tokens_per_minute: 1_000_000 }
  })
  const random = mulberry(20)
  const bodies: ReadonlyArray<NodeBody> = [
    registerBody({
      token: tokenOf("tower"),
      heldRuns: [{ runId: "r", attempt: 1, firstUnackedSeq: 1, lastSeq: 1 }]
    }),
    {
      case: "nodeStatus",
      value: { configRevision: "r", adapters: [{ name: "mock", state: 2, targets: [{ name: "echo" }] }] }
    },
    {
      case: "runEvent",
      value: { handle: 1, seq: 1, event: { case: "started", value: { backendTarget: "x" } } }
    },
    { case: "pong", value: { nonce: 3 } }
  ]
  const golden = Buffer.concat(bodies.map(nodeFrame))
  const mutate = () => {
    const bytes = Buffer.from(golden)
    for (let flips = 1 + Math.floor(random() * 4); flips > 0; flips--) {
      const at = Math.floor(random() * bytes.length)
      bytes[at] = bytes[at]! ^ (1 << Math.floor(random() * 8))
    }
    const cut = Math.floor(random() * bytes.length)
    const splice = Math.floor(random() * 8)
    return random() < 0.5 ? bytes : Buffer.concat([bytes.subarray(0, cut), bytes.subarray(cut + splice)])
  }
  for (let round = 0; round < 20; round++) {
    const nodes = await Promise.all(Array.from({ length: 50 }, () => edge.connect()))
    for (const node of nodes) {
      node.sendBytes(mutate())
      node.close()
    }
    await within("all ends", Promise.all(nodes.map((node) => node.closed)))
  }
  await expectNothingLeft(edge)
})

it("RS4 resets right after the accept leave nothing behind", async () => {
  await using edge = await startEdge()
  for (let round = 0; round < 10; round++) {
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = connect(edge.address)
        socket.on("error", () => undefined)
        await once(socket, "connect")
        const closed = once(socket, "close")
        socket.resetAndDestroy()
        await closed
      })
    )
  }
  await expectNothingLeft(edge)
})

it("connections beyond the bound are dropped and counted, and room is used again", async () => {
  await using edge = await startEdge({ maxConnections: 2 })
  const first = await edge.connect()
  await edge.node("tower")
  const dropped = await edge.connect()
  await within("the end of the third", dropped.closed)
  expect(edge.count("connectionRefused:connection_limit")).toBe(1)
  first.reset()
  await eventually("room", () => edge.counts().unregistered === 0)
  expect((await edge.node("attic")).accepted?.nodeId).toBe("attic")
})

it("a node registers over TLS; what does not speak TLS is named", async () => {
  const scope = Scope.makeUnsafe()
  const certificates = await Effect.runPromise(Scope.provide(makeTestCertificates, scope))
  await using edge = await startEdge({
    tls: { cert_file: certificates.server.certFile, key_file: certificates.server.keyFile }
  })
  const http = await edge.connect()
  http.sendBytes(Buffer.from("GET / HTTP/1.1\r\n\r\n"))
  await within("the end of the plain peer", http.closed)
  await eventually("the log line", () => edge.log.some((line) => line.text.includes("speak")))
  expect(edge.count("connectionRefused:tls")).toBe(1)

  const socket = connectTls({ ...edge.address, rejectUnauthorized: false })
  await once(socket, "secureConnect")
  socket.write(nodeFrame(registerBody({ token: tokenOf("tower"), bootId: randomBytes(16) })))
  await eventually("the link", () => edge.registry.find("tower"))
  socket.destroy()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})
