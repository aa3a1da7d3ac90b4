import { once } from "node:events"
import { readFile, writeFile } from "node:fs/promises"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { connect as connectTls } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { FrameConnection } from "./FrameConnection.ts"
import { type FrameListenerOptions, type FrameSocket, ListenError, listenFrames } from "./FrameListener.ts"
import type { FramePeer } from "./peerAddress.ts"
import { makeTestCertificates } from "./testing/certificates.ts"
import { processWarnings } from "./testing/processWarnings.ts"
import { makeRecorder, type Recorder, texts, turns, waitUntil, wireFrame } from "./testing/sockets.ts"

/** Listens on a free port of loopback and opens every connection into a recorder of its own. */
const listen = Effect.fnUntraced(function* (options: Partial<FrameListenerOptions> = {}) {
  const accepted: Array<{ readonly connection: FrameConnection; readonly recorder: Recorder }> = []
  const refused: Array<FramePeer> = []
  const tlsErrors: Array<{ readonly message: string; readonly peer: FramePeer }> = []
  const listener = yield* listenFrames({
    host: "127.0.0.1",
    port: 0,
    onConnection: (socket) => {
      const recorder = makeRecorder()
      accepted.push({ connection: socket.open(recorder.options), recorder })
    },
    onRefused: (peer) => refused.push(peer),
    onTlsError: (message, peer) => tlsErrors.push({ message, peer }),
    ...options
  })
  const { port } = listener.address
  return { listener, port, accepted, refused, tlsErrors }
})

/** A raw client, destroyed with the scope. */
const dial = (port: number): Effect.Effect<Socket, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const socket = connect({ port, host: "127.0.0.1" })
      socket.on("error", () => undefined)
      await once(socket, "connect")
      return socket
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** Waits until the server has ended or cut a client. */
const gone = (socket: Socket): Effect.Effect<void> => {
  socket.resume()
  return waitUntil(() => socket.closed)
}

describe("listenFrames", () => {
  it.live("gives frames of several clients to their own connections", () =>
    Effect.gen(function* () {
      const { listener, port, accepted } = yield* listen()
      assert.strictEqual(listener.address.host, "127.0.0.1")
      const one = yield* dial(port)
      yield* waitUntil(() => accepted.length === 1)
      const two = yield* dial(port)
      yield* waitUntil(() => accepted.length === 2)
      two.write(wireFrame("from two"))
      one.write(wireFrame("from one"))
      yield* waitUntil(() => accepted.every(({ recorder }) => recorder.frames.length === 1))
      assert.deepStrictEqual(
        accepted.map(({ recorder }) => texts(recorder.frames)[0]),
        ["from one", "from two"]
      )
      assert.deepStrictEqual(
        accepted.map(({ connection }) => [connection.remoteAddress, connection.remotePort]),
        [
          ["127.0.0.1", one.localPort],
          ["127.0.0.1", two.localPort]
        ]
      )
    })
  )

  it.live("shows an IPv4 peer of a dual-stack port by its IPv4 address", () =>
    Effect.gen(function* () {
      const { port, accepted } = yield* listen({ host: "::" })
      yield* dial(port)
      yield* waitUntil(() => accepted.length === 1)
      assert.strictEqual(accepted[0]?.connection.remoteAddress, "127.0.0.1")
    })
  )

  it.live("stops accepting with its scope, and leaves the connections to their owners", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { port, accepted } = yield* Scope.provide(listen(), scope)
      const client = yield* dial(port)
      yield* waitUntil(() => accepted.length === 1)
      yield* Scope.close(scope, Exit.void)
      const late = connect({ port, host: "127.0.0.1" })
      const [error] = yield* Effect.promise(() => once(late, "error"))
      assert.strictEqual(error.code, "ECONNREFUSED")
      client.write(wireFrame("still here"))
      yield* accepted[0]!.recorder.received(1)
      assert.deepStrictEqual(texts(accepted[0]!.recorder.frames), ["still here"])
      accepted[0]!.connection.destroy("test over")
    })
  )

  it.live("drops connections over the limit and names them", () =>
    Effect.gen(function* () {
      const { port, accepted, refused } = yield* listen({ maxConnections: 1 })
      const first = yield* dial(port)
      yield* waitUntil(() => accepted.length === 1)
      const second = yield* dial(port)
      yield* gone(second)
      assert.deepStrictEqual(
        refused.map((peer) => peer.remoteAddress),
        ["127.0.0.1"]
      )
      assert.isFalse(first.destroyed)
      assert.strictEqual(accepted.length, 1)
    })
  )

  it.live("destroys a connection that its owner does not open", () =>
    Effect.gen(function* () {
      const sockets: Array<FrameSocket> = []
      const { port } = yield* listen({ onConnection: (socket) => sockets.push(socket) })
      yield* gone(yield* dial(port))
      assert.strictEqual(sockets.length, 1)
    })
  )

  it.live("lives on when the owner of a connection throws, with a warning", () =>
    Effect.gen(function* () {
      const warnings = yield* processWarnings
      const { port } = yield* listen({
        onConnection: () => {
          throw new Error("no room")
        }
      })
      yield* gone(yield* dial(port))
      yield* gone(yield* dial(port))
      yield* waitUntil(() => warnings.length === 2)
      assert.deepStrictEqual(
        warnings.map(({ message }) => message),
        ["no room", "no room"]
      )
    })
  )

  it.live("lives on when clients reset right after connecting", () =>
    Effect.gen(function* () {
      const { port, accepted } = yield* listen()
      for (let i = 0; i < 30; i++) (yield* dial(port)).resetAndDestroy()
      const client = yield* dial(port)
      client.write(wireFrame("still served"))
      yield* waitUntil(() => accepted.some(({ recorder }) => recorder.frames.length > 0))
      // Whoever was accepted before its reset was noticed is told of it.
      yield* waitUntil(() => accepted.filter(({ recorder }) => recorder.closes.length === 0).length === 1)
      assert.deepStrictEqual(
        accepted
          .flatMap(({ recorder }) => recorder.closes.map(({ tag }) => tag))
          .filter((tag) => tag !== "reset"),
        []
      )
    })
  )
})

/** The error with which listening must fail. */
const listenFailure = (options: Partial<FrameListenerOptions>) =>
  Effect.flip(
    listenFrames({ host: "127.0.0.1", port: 0, onConnection: (socket) => socket.destroy(), ...options })
  )

describe("ListenError", () => {
  it.live("names a port that is taken", () =>
    Effect.gen(function* () {
      const { port } = yield* listen()
      const error = yield* listenFailure({ port })
      assert.instanceOf(error, ListenError)
      assert.strictEqual(error.reason, "address_in_use")
      assert.strictEqual(
        error.message,
        `cannot listen on 127.0.0.1:${port}: another process has this port; stop it or choose another port`
      )
    })
  )

  it.live("says that an address is not one of this machine", () =>
    Effect.gen(function* () {
      const error = yield* listenFailure({ host: "192.0.2.1", port: 7610 })
      assert.strictEqual(error.reason, "address_not_available")
      assert.strictEqual(
        error.message,
        "cannot listen on 192.0.2.1:7610: this machine has no address 192.0.2.1"
      )
    })
  )

  it.live("says that a name cannot be resolved", () =>
    Effect.gen(function* () {
      // A label this long is no name, so that no resolver is asked.
      const host = `${"x".repeat(64)}.invalid`
      const error = yield* listenFailure({ host, port: 7610 })
      assert.strictEqual(error.reason, "bad_host")
      assert.strictEqual(error.message, `cannot listen on ${host}:7610: the name ${host} cannot be resolved`)
    })
  )

  it.live("refuses what is no port", () =>
    Effect.gen(function* () {
      const error = yield* listenFailure({ port: 70_000 })
      assert.strictEqual(error.reason, "bad_port")
      assert.strictEqual(
        error.message,
        "cannot listen on port 70000: a port is a whole number from 0 to 65535"
      )
    })
  )

  it.live("names a certificate or key file that cannot be used", () =>
    Effect.gen(function* () {
      const { directory, server, client } = yield* makeTestCertificates
      const text = join(directory, "notes.txt")
      yield* Effect.promise(() => writeFile(text, "remember the milk"))
      const missing = join(directory, "missing.crt")
      const cases = [
        [{ ...server, certFile: missing }, `the certificate file ${missing} does not exist`],
        [{ ...server, certFile: directory }, `the certificate file ${directory} is a directory`],
        [{ ...server, certFile: text }, `${text} holds no certificate in PEM form`],
        [{ ...server, keyFile: text }, `${text} holds no private key in PEM form`],
        [
          { ...server, keyFile: client.keyFile },
          `the key file ${client.keyFile} does not belong to the certificate in ${server.certFile}`
        ],
        [{ ...server, clientCaFile: missing }, `the CA file ${missing} does not exist`]
      ] as const
      for (const [tls, what] of cases) {
        const error = yield* listenFailure({ port: 7610, tls })
        assert.strictEqual(error.reason, "tls_file")
        assert.strictEqual(error.message, `cannot listen on 127.0.0.1:7610: ${what}`)
      }
    })
  )
})

describe("TLS handshakes", () => {
  const failedHandshake = Effect.fnUntraced(function* (
    options: Partial<FrameListenerOptions>,
    act: (port: number) => Effect.Effect<Socket, never, Scope.Scope>
  ) {
    const { port, accepted, tlsErrors } = yield* listen(options)
    const client = yield* act(port)
    const localPort = client.localPort
    yield* waitUntil(() => tlsErrors.length > 0)
    yield* gone(client)
    assert.strictEqual(accepted.length, 0)
    assert.strictEqual(tlsErrors.length, 1)
    assert.deepStrictEqual(tlsErrors[0]?.peer, { remoteAddress: "127.0.0.1", remotePort: localPort ?? 0 })
    return tlsErrors[0]!.message
  })

  const dialTls = (port: number, options: { caFile: string; certFile?: string; keyFile?: string }) =>
    Effect.acquireRelease(
      Effect.promise(async () => {
        const socket = connectTls({
          port,
          host: "127.0.0.1",
          ca: await readFile(options.caFile),
          ...(options.certFile ? { cert: await readFile(options.certFile) } : {}),
          ...(options.keyFile ? { key: await readFile(options.keyFile) } : {})
        })
        socket.on("error", () => undefined)
        await once(socket, "secureConnect")
        return socket
      }),
      (socket) => Effect.sync(() => socket.destroy())
    )

  it.live("FR7 names a client that speaks HTTP", () =>
    Effect.gen(function* () {
      const { server } = yield* makeTestCertificates
      const message = yield* failedHandshake(
        { tls: server },
        Effect.fnUntraced(function* (port) {
          const client = yield* dial(port)
          client.write("GET / HTTP/1.1\r\n\r\n")
          return client
        })
      )
      assert.strictEqual(message, "the peer speaks HTTP on a TLS port")
    })
  )

  it.live("names a client that speaks frames without TLS", () =>
    Effect.gen(function* () {
      const { server } = yield* makeTestCertificates
      const message = yield* failedHandshake(
        { tls: server },
        Effect.fnUntraced(function* (port) {
          const client = yield* dial(port)
          client.write(wireFrame("x".repeat(300)))
          return client
        })
      )
      assert.strictEqual(message, "the peer does not speak TLS")
    })
  )

  it.live("names a client that goes away", () =>
    Effect.gen(function* () {
      const { server } = yield* makeTestCertificates
      const message = yield* failedHandshake(
        { tls: server },
        Effect.fnUntraced(function* (port) {
          const client = yield* dial(port)
          client.end()
          return client
        })
      )
      assert.strictEqual(message, "the peer ended the connection during the TLS handshake")
    })
  )

  it.live("names a client without the certificate that it needs", () =>
    Effect.gen(function* () {
      const { caFile, server } = yield* makeTestCertificates
      const message = yield* failedHandshake({ tls: { ...server, clientCaFile: caFile } }, (port) =>
        dialTls(port, { caFile })
      )
      assert.strictEqual(message, "the peer sent no client certificate, and this port requires one")
    })
  )

  it.live("names a client whose certificate is not trusted", () =>
    Effect.gen(function* () {
      const { caFile, server, stranger } = yield* makeTestCertificates
      const message = yield* failedHandshake({ tls: { ...server, clientCaFile: caFile } }, (port) =>
        dialTls(port, { caFile, ...stranger })
      )
      assert.strictEqual(
        message,
        "the peer's certificate is self-signed and not trusted here; give it as the CA file"
      )
    })
  )

  it.live("ends one that takes too long, however busy the client looks", () =>
    Effect.gen(function* () {
      const { server } = yield* makeTestCertificates
      // The header of a record of 16 KiB that never becomes whole.
      const message = yield* failedHandshake(
        { tls: server, tlsHandshakeTimeoutMs: 100 },
        Effect.fnUntraced(function* (port) {
          const client = yield* dial(port)
          client.write(Buffer.from([0x16, 3, 1, 0x3f, 0xff, 1]))
          const drip = setInterval(() => client.write(Buffer.alloc(1)), 5)
          client.on("close", () => clearInterval(drip))
          return client
        })
      )
      assert.strictEqual(message, "the TLS handshake was not finished within 100 ms")
    })
  )

  it.live("leave the connection its own write deadline", () =>
    Effect.gen(function* () {
      const { caFile, server } = yield* makeTestCertificates
      const recorder = makeRecorder({ writeDeadlineMs: 100 })
      const { port } = yield* listen({
        tls: server,
        onConnection: (socket) => socket.open(recorder.options).send(Buffer.alloc(32 * 1024 * 1024), "data")
      })
      yield* dialTls(port, { caFile })
      assert.strictEqual((yield* recorder.closed).tag, "write_deadline")
    })
  )

  it.live("end with the listener's scope, without a report", () =>
    Effect.gen(function* () {
      const { server } = yield* makeTestCertificates
      const scope = yield* Scope.make()
      const { port, tlsErrors } = yield* Scope.provide(listen({ tls: server }), scope)
      const client = yield* dial(port)
      // Until it is accepted.
      yield* turns(50)
      yield* Scope.close(scope, Exit.void)
      yield* gone(client)
      yield* turns(10)
      assert.deepStrictEqual(tlsErrors, [])
    })
  )
})
