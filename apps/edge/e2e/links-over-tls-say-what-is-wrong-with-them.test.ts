// TLS and mutual TLS between an edge and a node, both real processes: what works, and that whatever is wrong with a
// certificate is told to a person who can do something about it, at the side where that person is.
import { makeTestCertificates, type TestCertificates } from "@iop/proto-socket/testing/certificates"
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { configText, mockNodeConfig, tokenOf } from "./harness/config.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { MockNode } from "./harness/MockNode.ts"
import { RawNode } from "./harness/RawNode.ts"
import { runCommand } from "./harness/runCommand.ts"
import { TempFolder } from "./harness/TempFolder.ts"
import { within } from "./harness/waiting.ts"

const scope = Scope.makeUnsafe()
let certificates: TestCertificates

beforeAll(async () => {
  certificates = await Effect.runPromise(Scope.provide(makeTestCertificates, scope))
})

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

type Identity = "server" | "expired" | "stranger"

const edgeConfig = (identity: Identity, mutual: boolean) => {
  const { certFile, keyFile } = certificates[identity]
  const tls = {
    cert_file: certFile,
    key_file: keyFile,
    ...(mutual ? { client_ca_file: certificates.caFile } : {})
  }
  return {
    nodes: [mockNodeConfig("tower")],
    listen: { nodes: { tls } },
    link: { register_timeout: "2s" }
  }
}

const startEdge = (cleanup: AsyncDisposableStack, identity: Identity = "server", mutual = false) =>
  EdgeProcess.start(cleanup, edgeConfig(identity, mutual))

const startNode = (cleanup: AsyncDisposableStack, edge: EdgeProcess, args: ReadonlyArray<string>) =>
  new MockNode(cleanup, { edge: edge.nodes, token: tokenOf("tower"), args })

const trusting = () => ["--ca-file", certificates.caFile]

const showing = (identity: "client" | "expired" | "stranger") => [
  "--cert-file",
  certificates[identity].certFile,
  "--key-file",
  certificates[identity].keyFile
]

/** The node's sentence about why it has no link; it goes on trying. */
const complaint = (node: MockNode) =>
  node.line("why it has no link", (line) => (/next attempt in [\d.]+ s/.test(line) ? line : undefined))

const expectRun = async (edge: EdgeProcess) => {
  await edge.admin.untilNode("tower", "routable")
  const stream = await edge.admin.stream({ adapter: "mock", target: "echo", prompt: "나무 over TLS" })
  await stream.finish()
  expect(stream.text).toBe("나무 over TLS")
}

describe("a link over TLS", () => {
  it("carries runs when the node trusts the edge's authority", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup)
    startNode(cleanup, edge, trusting())
    await expectRun(edge)
  })

  it("checks the name that the node was given instead of the address", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup)
    startNode(cleanup, edge, [...trusting(), "--server-name", "node.example"])
    await expectRun(edge)
  })

  it("says to the node that the edge's certificate has expired", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup, "expired")
    const line = await complaint(startNode(cleanup, edge, trusting()))
    expect(line).toContain(`cannot connect to 127.0.0.1:${edge.nodes.port}`)
    expect(line).toMatch(/certificate has expired; renew it, or check this machine's clock/)
    expect((await edge.admin.node("tower")).state).toBe("offline")
  })

  it("says to the node that the edge's certificate is for another name, and for which", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup)
    const line = await complaint(
      startNode(cleanup, edge, [...trusting(), "--server-name", "edge.example.org"])
    )
    expect(line).toMatch(/certificate is for another name/)
    expect(line).toContain("edge.example.org")
    expect(line).toContain("node.example")
  })

  it.each([
    [
      "from an authority that nobody gave",
      "server",
      /not signed by a CA that is trusted here; give the CA's/
    ],
    ["signed by itself", "stranger", /self-signed and not trusted here; give it as the CA file/]
  ] as const)("says to the node that it does not trust a certificate %s", async (_, identity, words) => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup, identity)
    expect(await complaint(startNode(cleanup, edge, ["--tls"]))).toMatch(words)
    // The edge's people see it too.
    const told = await edge.logged("tls handshake with a node failed")
    expect(told.fields.peer).toMatch(/^127\.0\.0\.1:\d+$/)
    expect(told.fields.reason).toMatch(/\w/)
  })

  it("says on both sides that one of them speaks TLS and the other does not", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup)
    const plain = startNode(cleanup, edge, [])
    expect(await complaint(plain)).toMatch(/does the peer want TLS\?/)
    expect((await edge.logged("tls handshake with a node failed")).fields.reason).toMatch(
      /does not speak TLS/
    )
    const open = await EdgeProcess.start(cleanup, { nodes: [mockNodeConfig("tower")] })
    expect(await complaint(startNode(cleanup, open, trusting()))).toMatch(/does it speak TLS\?/)
    await open.logged(/./, ({ line }) => line.includes("peer speaks TLS on the node port"))
  })

  it("goes on serving other nodes while handshakes fail and hang", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup)
    const silent = await Promise.all(Array.from({ length: 20 }, () => RawNode.connect(cleanup, edge.nodes)))
    const failing = await Promise.all(Array.from({ length: 20 }, () => RawNode.connect(cleanup, edge.nodes)))
    for (const link of failing) link.sendBytes(Buffer.from("SSH-2.0-OpenSSH_9.6\r\n"))
    startNode(cleanup, edge, trusting())
    await expectRun(edge)
    await within("the end of the links that speak something else", Promise.all(failing.map((l) => l.closed)))
    const metrics = await edge.metrics()
    expect(metrics.count("iop_edge_link_connections_refused_total", { reason: "tls" })).toBeGreaterThan(19)
    await within("the end of the silent handshakes", Promise.all(silent.map((link) => link.closed)))
  })
})

describe("a link over mutual TLS", () => {
  it("carries runs when the node shows a certificate of the authority", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup, "server", true)
    startNode(cleanup, edge, [...trusting(), ...showing("client")])
    await expectRun(edge)
  })

  it("says on both sides that the node showed no certificate", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup, "server", true)
    const line = await complaint(startNode(cleanup, edge, trusting()))
    expect(line).toMatch(/the peer wants a client certificate and got none; give a certificate and key file/)
    expect((await edge.logged("tls handshake with a node failed")).fields.reason).toMatch(
      /sent no client certificate, and this port requires one/
    )
  })

  it("says on both sides that it does not trust the node's certificate", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup, "server", true)
    const line = await complaint(startNode(cleanup, edge, [...trusting(), ...showing("stranger")]))
    expect(line).toMatch(/it may not accept this side's certificate, its own log says why/)
    expect((await edge.logged("tls handshake with a node failed")).fields.reason).toMatch(
      /self-signed|not signed by a CA that is trusted/
    )
  })

  it("says on both sides that the node's certificate has expired", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup, "server", true)
    const line = await complaint(startNode(cleanup, edge, [...trusting(), ...showing("expired")]))
    expect(line).toMatch(/it may not accept this side's certificate, its own log says why/)
    expect((await edge.logged("tls handshake with a node failed")).fields.reason).toMatch(
      /certificate has expired/
    )
  })
})

describe("files of TLS that are wrong", () => {
  it.each([
    ["is not there", "no-such-file.crt", "no such file"],
    ["holds something else", "config", "holds no certificate in PEM form"]
  ])("end the start of an edge with 2 when a certificate %s", async (_, name, words) => {
    await using cleanup = new AsyncDisposableStack()
    const folder = new TempFolder(cleanup)
    const other = folder.write("config", "this is no certificate")
    const certFile = name === "config" ? other : `${folder.path}/${name}`
    const config = edgeConfig("server", false)
    const file = folder.write(
      "edge.yaml",
      configText({
        ...config,
        listen: { nodes: { tls: { cert_file: certFile, key_file: certificates.server.keyFile } } }
      })
    )
    const { code, stderr, stdout } = await runCommand(["serve", "--config", file])
    expect(code).toBe(2)
    expect(stdout).toBe("")
    expect(stderr).toContain(certFile)
    expect(stderr).toContain(words)
    expect(stderr).not.toMatch(/\bat .*\.ts:\d+/)
  })

  it("end the start of an edge with 2 when the key belongs to another certificate", async () => {
    await using cleanup = new AsyncDisposableStack()
    const tls = { cert_file: certificates.server.certFile, key_file: certificates.client.keyFile }
    const file = new TempFolder(cleanup).write(
      "edge.yaml",
      configText({ ...edgeConfig("server", false), listen: { nodes: { tls } } })
    )
    const { code, stderr } = await runCommand(["serve", "--config", file])
    expect(code).toBe(2)
    expect(stderr).toContain(`the key file ${tls.key_file} does not belong to the certificate`)
  })

  it("are named by a node, which goes on trying", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await startEdge(cleanup, "server", true)
    const missing = `${new TempFolder(cleanup).path}/ca.crt`
    const node = startNode(cleanup, edge, ["--ca-file", missing])
    expect(await complaint(node)).toContain(`the CA file ${missing} does not exist`)
    const half = startNode(cleanup, edge, [...trusting(), "--cert-file", certificates.client.certFile])
    expect(await complaint(half)).toContain("needs both a certificate file and a key file")
    expect([node.exit, half.exit]).toEqual([undefined, undefined])
  })
})
