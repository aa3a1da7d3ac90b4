import { once } from "node:events"
import { createServer, type Socket } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { type DialOptions, dialFrames } from "./dialFrames.ts"
import type { FrameConnection } from "./FrameConnection.ts"
import { listenFrames, type TlsServerOptions } from "./FrameListener.ts"
import { makeTestCertificates } from "./testing/certificates.ts"
import { makeRecorder, type Recorder, texts, waitUntil } from "./testing/sockets.ts"

/** A listener on loopback that answers each frame with the same frame. */
const listenEcho = Effect.fnUntraced(function* (tls?: TlsServerOptions) {
  const accepted: Array<{ readonly connection: FrameConnection; readonly recorder: Recorder }> = []
  const { address } = yield* listenFrames({
    host: "127.0.0.1",
    port: 0,
    ...(tls ? { tls } : {}),
    onConnection: (socket) => {
      const recorder = makeRecorder({
        onFrames: (frames, connection) => {
          for (const frame of frames) connection.send(Uint8Array.from(frame), "data")
        }
      })
      accepted.push({ connection: socket.open(recorder.options), recorder })
    }
  })
  return { port: address.port, accepted }
})

/** Dials loopback into a recorder; the scope destroys the connection. */
const dial = (options: Partial<DialOptions> & { readonly port: number }) => {
  const recorder = makeRecorder()
  return Effect.acquireRelease(
    Effect.map(dialFrames({ host: "127.0.0.1", ...recorder.options, ...options }), (connection) => ({
      connection,
      recorder
    })),
    ({ connection }) => Effect.sync(() => connection.destroy("test over"))
  )
}

/** A server that accepts and says nothing. */
const listenSilent = Effect.acquireRelease(
  Effect.promise(async () => {
    const accepted: Array<Socket> = []
    const server = createServer((socket) => {
      socket.on("error", () => undefined)
      accepted.push(socket)
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    if (address === null || typeof address === "string") throw new Error("the server has no port")
    return { accepted, server, port: address.port }
  }),
  ({ accepted, server }) =>
    Effect.sync(() => {
      server.close()
      for (const socket of accepted) socket.destroy()
    })
)

describe("dialFrames", () => {
  it.live("sends and receives over TCP, and each side knows the other", () =>
    Effect.gen(function* () {
      const { port, accepted } = yield* listenEcho()
      const { connection, recorder } = yield* dial({ port })
      connection.send(Buffer.from("hello"), "data")
      yield* recorder.received(1)
      assert.deepStrictEqual(texts(recorder.frames), ["hello"])
      assert.deepStrictEqual([connection.remoteAddress, connection.remotePort], ["127.0.0.1", port])
      connection.close("done", 10_000)
      assert.deepStrictEqual(yield* accepted[0]!.recorder.closed, {
        tag: "ended",
        message: "the peer ended the connection"
      })
      assert.deepStrictEqual(yield* recorder.closed, { tag: "local", message: "done" })
    })
  )

  it.live("says that nothing listens", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(listenSilent)
      const error = yield* Effect.flip(dial({ port }))
      assert.strictEqual(error.kind, "refused")
      assert.strictEqual(
        error.message,
        `cannot connect to 127.0.0.1:${port}: nothing listens on that port, or a firewall refuses it`
      )
    })
  )

  it.live("says that it reached something else, such as the HTTP port of an edge", () =>
    Effect.gen(function* () {
      const { accepted, port } = yield* listenSilent
      const { connection, recorder } = yield* dial({ port })
      connection.send(Buffer.from("a registration"), "control")
      yield* waitUntil(() => accepted.length > 0)
      accepted[0]?.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
      assert.strictEqual(
        (yield* recorder.closed).message,
        "the peer answers HTTP, so this is not its port for nodes (an edge's is 7610 unless it is configured)"
      )
    })
  )

  it.live("says that a name is not known", () =>
    Effect.gen(function* () {
      // A label this long is no name, so that no resolver is asked.
      const host = `${"x".repeat(64)}.invalid`
      const error = yield* Effect.flip(dial({ host, port: 7610 }))
      assert.strictEqual(error.kind, "unresolved")
      assert.include(error.message, `cannot connect to ${host}:7610: the name ${host} `)
    })
  )

  it.live("refuses what is no port", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(dial({ port: 0 }))
      assert.strictEqual(
        error.message,
        "cannot connect to 127.0.0.1:0: 0 is not a port; it is a whole number from 1 to 65535"
      )
    })
  )

  it.live("gives up after its time, the handshake included", () =>
    Effect.gen(function* () {
      const { accepted, port } = yield* listenSilent
      const error = yield* Effect.flip(dial({ port, connectTimeoutMs: 50, tls: {} }))
      assert.strictEqual(error.kind, "timeout")
      assert.strictEqual(
        error.message,
        `cannot connect to 127.0.0.1:${port}: no answer within 50 ms; is the address right and the port open?`
      )
      accepted[0]!.resume()
      yield* waitUntil(() => accepted[0]!.closed)
    })
  )

  it.live("destroys the socket when it is interrupted", () =>
    Effect.gen(function* () {
      const { accepted, port } = yield* listenSilent
      // Not as the acquisition of a resource, which cannot be interrupted.
      const dialling = dialFrames({ host: "127.0.0.1", port, tls: {}, ...makeRecorder().options })
      const fiber = yield* Effect.forkChild(dialling, { startImmediately: true })
      yield* waitUntil(() => accepted.length === 1)
      yield* Fiber.interrupt(fiber)
      accepted[0]!.resume()
      yield* waitUntil(() => accepted[0]!.closed)
    })
  )
})

describe("dialFrames over TLS", () => {
  it.live("sends and receives, by address and by another name", () =>
    Effect.gen(function* () {
      const { caFile, server } = yield* makeTestCertificates
      const { port } = yield* listenEcho(server)
      for (const tls of [{ caFile }, { caFile, serverName: "node.example" }]) {
        const { connection, recorder } = yield* dial({ port, tls })
        connection.send(Buffer.from("small"), "data")
        connection.send(Buffer.alloc(1024 * 1024, "x"), "data")
        yield* recorder.received(2)
        assert.deepStrictEqual(
          recorder.frames.map((frame) => frame.length),
          [5, 1024 * 1024]
        )
      }
    })
  )

  it.live("shows its certificate to a peer that wants one", () =>
    Effect.gen(function* () {
      const { caFile, server, client } = yield* makeTestCertificates
      const { port } = yield* listenEcho({ ...server, clientCaFile: caFile })
      const { connection, recorder } = yield* dial({ port, tls: { caFile, ...client } })
      connection.send(Buffer.from("it is me"), "data")
      yield* recorder.received(1)
      assert.deepStrictEqual(texts(recorder.frames), ["it is me"])
    })
  )

  it.live("learns that a peer wants a certificate from the end of the connection", () =>
    Effect.gen(function* () {
      const { caFile, server } = yield* makeTestCertificates
      const { port, accepted } = yield* listenEcho({ ...server, clientCaFile: caFile })
      const { recorder } = yield* dial({ port, tls: { caFile } })
      const reason = yield* recorder.closed
      assert.strictEqual(reason.tag, "error")
      assert.strictEqual(
        reason.message,
        "the peer wants a client certificate and got none; give a certificate and key file"
      )
      assert.strictEqual(accepted.length, 0)
    })
  )

  it.live("says what the end of a connection without a byte may mean", () =>
    Effect.gen(function* () {
      const { caFile, client, server, stranger } = yield* makeTestCertificates
      const { port } = yield* listenEcho({ ...server, clientCaFile: caFile })
      const refused = yield* dial({ port, tls: { caFile, ...stranger } })
      assert.match(
        (yield* refused.recorder.closed).message,
        / before the peer had sent anything; it may not accept this side's certificate, its own log says why$/
      )
      const plain = yield* dial({ port })
      plain.connection.send(Buffer.from("no TLS"), "data")
      assert.match(
        (yield* plain.recorder.closed).message,
        / before the peer had sent anything; does the peer want TLS\?$/
      )
      const good = yield* dial({ port, tls: { caFile, ...client } })
      good.connection.send(Buffer.from("hello"), "data")
      yield* good.recorder.received(1)
      good.connection.close("done", 10_000)
      assert.deepStrictEqual(yield* good.recorder.closed, { tag: "local", message: "done" })
    })
  )

  const refusals = [
    [
      "expired",
      { expired: true },
      "the peer's certificate has expired; renew it, or check this machine's clock"
    ],
    [
      "from an authority that is not trusted",
      { noCa: true },
      "the peer's certificate is not signed by a CA that is trusted here; give the CA's certificate as the CA file"
    ],
    [
      "for another name",
      { serverName: "other.example" },
      "the peer's certificate is for another name: Host: other.example. is not in the cert's altnames: DNS:localhost, DNS:node.example, IP Address:127.0.0.1"
    ],
    [
      "for another address",
      { serverName: "192.0.2.1" },
      "the peer's certificate is for another name: IP: 192.0.2.1 is not in the cert's list: 127.0.0.1"
    ]
  ] as const
  for (const [name, how, what] of refusals) {
    it.live(`refuses a certificate that is ${name}`, () =>
      Effect.gen(function* () {
        const certificates = yield* makeTestCertificates
        const { port, accepted } = yield* listenEcho(
          "expired" in how ? certificates.expired : certificates.server
        )
        const error = yield* Effect.flip(
          dial({
            port,
            tls: {
              ...("noCa" in how ? {} : { caFile: certificates.caFile }),
              ...("serverName" in how ? { serverName: how.serverName } : {})
            }
          })
        )
        assert.strictEqual(error.message, `cannot connect to 127.0.0.1:${port}: ${what}`)
        assert.strictEqual(error.kind, "tls")
        assert.isTrue(accepted.every(({ recorder }) => recorder.frames.length === 0))
      })
    )
  }

  it.live("names a peer that does not speak TLS", () =>
    Effect.gen(function* () {
      const { accepted, port } = yield* listenSilent
      const fiber = yield* Effect.forkChild(Effect.flip(dial({ port, tls: {} })), { startImmediately: true })
      yield* waitUntil(() => accepted.length === 1)
      accepted[0]!.write("HTTP/1.1 400 Bad Request\r\n\r\n")
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error.kind, "tls")
      assert.strictEqual(error.message, `cannot connect to 127.0.0.1:${port}: the peer does not speak TLS`)
    })
  )

  it.live("names its own file that cannot be used", () =>
    Effect.gen(function* () {
      const { directory, client } = yield* makeTestCertificates
      const missing = join(directory, "missing.pem")
      const cases = [
        [{ caFile: missing }, `the CA file ${missing} does not exist`],
        [{ ...client, keyFile: missing }, `the key file ${missing} does not exist`],
        [{ certFile: client.certFile }, "a client certificate needs both a certificate file and a key file"]
      ] as const
      for (const [tls, what] of cases) {
        const error = yield* Effect.flip(dial({ port: 7610, tls }))
        assert.strictEqual(error.kind, "tls")
        assert.strictEqual(error.message, `cannot connect to 127.0.0.1:7610: ${what}`)
      }
    })
  )
})
