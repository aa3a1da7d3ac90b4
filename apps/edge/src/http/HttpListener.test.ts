// The listener over real sockets: what it lets through, and what it ends by itself.
import { connect, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Redacted, Scope } from "effect"
import { makeApiKeys } from "./ApiKeys.ts"
import { type HttpListenerOptions, type HttpSurface, listenHttp, writeProblem } from "./HttpListener.ts"
import { readJson } from "./readJson.ts"

const LIMIT = 1000
/** More than the sockets of both sides take by themselves. */
const LARGE = 16 * 1024 * 1024

/** Reads JSON and says what it read; `/open` is answered with a stream that never ends. */
const surface: HttpSurface = {
  name: "test",
  owns: (path) => path !== "/nothing",
  guarded: () => true,
  refuse: (response, problem) => writeProblem(response, problem, { refused: problem.code }),
  handle: (request, response, context) => {
    context.route = "/test"
    if (request.url === "/broken") throw new Error("secret detail")
    if (request.url === "/large") {
      response.end(Buffer.alloc(LARGE))
      return
    }
    if (request.url === "/open") {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(": open\n\n")
      return
    }
    Effect.runFork(
      Effect.match(readJson(request, LIMIT), {
        onSuccess: (body) => response.end(JSON.stringify({ caller: context.caller, body })),
        onFailure: (problem) => surface.refuse(response, problem, context.requestId)
      })
    )
  }
}

const options: HttpListenerOptions = {
  name: "http",
  host: "127.0.0.1",
  port: 0,
  hosts: [],
  keys: makeApiKeys({ api_keys: [] }),
  surfaces: [surface],
  headersTimeoutMs: 10_000,
  bodyTimeoutMs: 60_000,
  maxBody: LIMIT
}

/** A listener, and a way to say bytes to it and hear all that it says until it closes. */
const listening = Effect.fnUntraced(function* (change: Partial<HttpListenerOptions> = {}) {
  const { address } = yield* listenHttp({ ...options, ...change })
  const open = Effect.acquireRelease(
    Effect.sync(() => connect(address.port, "127.0.0.1")),
    (socket) => Effect.sync(() => socket.destroy())
  )
  return { port: address.port, host: `127.0.0.1:${address.port}`, open }
})

/** Everything until the other side closes. */
const heard = (socket: Socket) =>
  Effect.callback<string>((resume) => {
    let text = ""
    socket.setEncoding("utf8")
    socket.on("data", (chunk) => {
      text += chunk
    })
    socket.on("error", () => {})
    socket.once("close", () => resume(Effect.succeed(text)))
  })

/** What comes until it holds the text. */
const hears = (socket: Socket, wanted: string) =>
  Effect.callback<string>((resume) => {
    let text = ""
    const onData = (chunk: Buffer) => {
      text += chunk.toString("utf8")
      if (!text.includes(wanted)) return
      socket.off("data", onData)
      resume(Effect.succeed(text))
    }
    socket.on("data", onData)
  })

const post = (host: string, body: string, headers: ReadonlyArray<string> = []) =>
  [
    "POST / HTTP/1.1",
    `Host: ${host}`,
    "Content-Type: application/json",
    ...headers,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "",
    body
  ].join("\r\n")

describe("an HTTP listener", () => {
  it.live("HT3 answers 413 to a declared length before the body comes, and closes", () =>
    Effect.gen(function* () {
      const { host, open } = yield* listening()
      const socket = yield* open
      socket.write(
        `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 1001\r\n\r\n`
      )
      const answer = yield* heard(socket)
      assert.match(answer, /^HTTP\/1\.1 413 /)
      assert.match(answer, /\r\nconnection: close\r\n/i)
      assert.match(answer, /\{"refused":"request_too_large"\}$/)
    })
  )

  it.live("HT3 answers 413 to a chunked body once it is too long, and closes", () =>
    Effect.gen(function* () {
      const { host, open } = yield* listening()
      const socket = yield* open
      socket.write(
        `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
      )
      socket.write(`3e9\r\n${"x".repeat(1001)}\r\n`)
      const answer = yield* heard(socket)
      assert.match(answer, /^HTTP\/1\.1 413 /)
    })
  )

  it.live("HT14 never takes what is left of a refused body for the next request", () =>
    Effect.gen(function* () {
      const { host, open } = yield* listening()
      const socket = yield* open
      const smuggled = post(host, `{"smuggled":true}`)
      socket.write(
        `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Type: text/plain\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`
      )
      const answer = yield* heard(socket)
      assert.match(answer, /^HTTP\/1\.1 415 /)
      assert.strictEqual(answer.match(/HTTP\/1\.1/g)?.length, 1)
    })
  )

  it.live("HT14 answers pipelined requests in order, each with its own", () =>
    Effect.gen(function* () {
      const { host, open } = yield* listening()
      const socket = yield* open
      socket.write(post(host, "1") + post(host, "oops") + post(host, "3", ["Connection: close"]))
      const answers = (yield* heard(socket)).split(/(?=HTTP\/1\.1)/)
      assert.deepStrictEqual(
        answers.map((answer) => answer.replace(/^HTTP\/1\.1 (\d+)[\s\S]*\r\n\r\n/, "$1 ").slice(0, 60)),
        [
          `200 {"caller":"test","body":1}`,
          `400 {"refused":"invalid_request"}`,
          `200 {"caller":"test","body":3}`
        ]
      )
    })
  )

  it.live(
    "HT14 refuses the request after the sixteenth that waits, in its place, and answers none after it",
    () =>
      Effect.gen(function* () {
        const { host, open } = yield* listening()
        const socket = yield* open
        socket.write(
          Array.from({ length: 400 }, (_, at) => `GET /?${at} HTTP/1.1\r\nHost: ${host}\r\n\r\n`).join("")
        )
        const answers = (yield* heard(socket)).split(/(?=HTTP\/1\.1)/)
        assert.strictEqual(answers.length, 18)
        for (const answer of answers.slice(0, 17)) {
          assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*\{"caller":"test"\}$/)
        }
        assert.match(
          answers[17] ?? "",
          /^HTTP\/1\.1 429 [\s\S]*\r\nconnection: close\r\n[\s\S]*\{"refused":"too_many_requests"\}$/i
        )
      })
  )

  it.live("HT14 works on one request of a connection at a time", () =>
    Effect.gen(function* () {
      const reached: Array<string> = []
      const counted: HttpSurface = {
        ...surface,
        handle: (request, response, context) => {
          reached.push(request.url ?? "")
          surface.handle(request, response, context)
        }
      }
      const { host, open } = yield* listening({ surfaces: [counted] })
      const socket = yield* open
      const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`
      socket.write(get("/open") + get("/second"))
      yield* hears(socket, ": open")
      const other = yield* open
      other.write(get("/third"))
      yield* hears(other, `{"caller":"test"}`)
      assert.deepStrictEqual(reached, ["/open", "/third"])
    })
  )

  it.live("HT5 cuts off whoever takes nothing of an answer", () =>
    Effect.gen(function* () {
      const cut = yield* Deferred.make<number>()
      const { host, open } = yield* listening({
        writeDeadlineMs: 50,
        observe: ({ status }) => Deferred.doneUnsafe(cut, Effect.succeed(status))
      })
      const silent = yield* open
      silent.write(`GET /open HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      yield* hears(silent, ": open")
      const stalled = yield* open
      stalled.pause()
      // Half a request more gains nothing.
      stalled.write(`GET /large HTTP/1.1\r\nHost: ${host}\r\n\r\nGET / HT`)
      assert.strictEqual(yield* Deferred.await(cut), 200)
      const taking = yield* open
      taking.write(`GET /large HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      assert.isAbove((yield* heard(taking)).length, LARGE)
      assert.isFalse(silent.closed)
    })
  )

  it.live("HT2 says continue only to a request that may send its body", () =>
    Effect.gen(function* () {
      const { host, open } = yield* listening({
        keys: makeApiKeys({ api_keys: [{ name: "ada", key: Redacted.make("k".repeat(32)) }] })
      })
      const head = (key: string) =>
        `POST / HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n`
      const stranger = yield* open
      stranger.write(head("wrong"))
      assert.match(yield* heard(stranger), /^HTTP\/1\.1 401 /)
      const known = yield* open
      known.write(head("k".repeat(32)))
      assert.match(yield* hears(known, "\r\n\r\n"), /^HTTP\/1\.1 100 Continue\r\n\r\n$/)
      known.write("7")
      assert.include(yield* hears(known, "}"), `{"caller":"ada","body":7}`)
    })
  )

  it.live("HT4 ends headers and bodies that come too slowly with 408", () =>
    Effect.gen(function* () {
      const { host, open } = yield* listening({ headersTimeoutMs: 50, bodyTimeoutMs: 50 })
      const headers = yield* open
      const body = yield* open
      headers.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `)
      body.write(
        `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n[`
      )
      const answers = yield* Effect.all([heard(headers), heard(body)], { concurrency: 2 })
      for (const answer of answers) {
        assert.match(answer, /^HTTP\/1\.1 408 /)
        assert.match(answer, /"message":"the request took too long to arrive"/)
      }
    })
  )

  it.live(
    "RS1 closes connections over its limit at once and tells it, and takes new ones when there is room",
    () =>
      Effect.gen(function* () {
        const refused: Array<string> = []
        const { host, open } = yield* listening({
          maxConnections: 1,
          onRefused: (address) => refused.push(address)
        })
        yield* Effect.scoped(
          Effect.gen(function* () {
            const first = yield* open
            first.write(post(host, "1"))
            yield* hears(first, `"body":1`)
            assert.strictEqual(yield* heard(yield* open), "")
            assert.deepStrictEqual(refused, ["127.0.0.1"])
            first.end(post(host, "2", ["Connection: close"]))
            yield* heard(first)
          })
        )
        const second = yield* open
        second.write(post(host, "3"))
        yield* hears(second, `"body":3`)
      })
  )

  it.live("HT8 takes a caller's request id only when it is short and plain", () =>
    Effect.gen(function* () {
      const { host, open } = yield* listening()
      const idOf = Effect.fnUntraced(function* (given: string) {
        const socket = yield* open
        socket.write(post(host, "1", ["Connection: close", `X-Request-Id: ${given}`]))
        return /\r\nx-request-id: ([^\r]*)\r\n/i.exec(yield* heard(socket))?.[1]
      })
      assert.strictEqual(yield* idOf("abc-1.2_X"), "abc-1.2_X")
      for (const hostile of ["a b", `"quoted"`, "x".repeat(65), "ünï", "<b>"]) {
        assert.match((yield* idOf(hostile)) ?? "", /^req_[\w-]{16}$/)
      }
    })
  )

  it.live("keeps pages of others out, whatever they ask for", () =>
    Effect.gen(function* () {
      const { host, open } = yield* listening()
      const ask = Effect.fnUntraced(function* (head: string) {
        const socket = yield* open
        socket.write(head)
        return (yield* heard(socket)).slice(0, 12)
      })
      assert.strictEqual(yield* ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "HTTP/1.1 421")
      assert.strictEqual(
        yield* ask(`GET / HTTP/1.1\r\nHost: ${host}\r\nOrigin: http://evil.example\r\n\r\n`),
        "HTTP/1.1 403"
      )
      assert.strictEqual(yield* ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), "HTTP/1.1 400")
      assert.strictEqual(
        yield* ask(`GET /nothing HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
        "HTTP/1.1 404"
      )
    })
  )

  it.live("answers a fault of a surface with a number and nothing of the fault", () =>
    Effect.gen(function* () {
      const { host, open } = yield* listening()
      const socket = yield* open
      socket.write(`GET /broken HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      const answer = yield* heard(socket)
      assert.match(answer, /^HTTP\/1\.1 500 /)
      assert.notInclude(answer, "secret")
    })
  )

  it.live("tells each answer with the path's pattern, never with the caller's words", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const { host, open } = yield* listening({
        observe: ({ route, method, status }) => told.push(`${method} ${route} ${status}`)
      })
      for (const [method, path] of [
        ["POST", "/x"],
        ["BREW", "/nothing"],
        ["GET", "/nothing"]
      ]) {
        const socket = yield* open
        socket.write(
          `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 1\r\nConnection: close\r\n\r\n1`
        )
        yield* heard(socket)
      }
      assert.deepStrictEqual(told, ["POST /test 200", "GET none 404"])
    })
  )

  it.live("ED1 closes with streams open and connections idle, without waiting for them", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { host, open } = yield* Scope.provide(listening(), scope)
      const idle = yield* open
      idle.write(post(host, "1"))
      yield* hears(idle, `"body":1`)
      const streaming = yield* open
      streaming.write(`GET /open HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      yield* hears(streaming, ": open")
      const bothEnd = yield* Effect.forkChild(
        Effect.all([heard(idle), heard(streaming)], { concurrency: 2 }),
        {
          startImmediately: true
        }
      )
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* Fiber.join(bothEnd), ["", ""])
    })
  )

  it.live("ED6 says which listener can't be opened, where, and what to do", () =>
    Effect.gen(function* () {
      const { port } = yield* listening()
      const error = yield* Effect.flip(listenHttp({ ...options, name: "ops", port }))
      assert.strictEqual(
        error.message,
        `listen.ops: cannot listen on 127.0.0.1:${port}: another process uses this port; stop it or choose another port`
      )
    })
  )
})
