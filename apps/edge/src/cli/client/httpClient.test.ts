// The client against the admin API over real HTTP: what the one says, the other understands.
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Stream } from "effect"
import { AdminServer, adminFixture } from "../../../test/adminFixture.ts"
import { cancelled, completed, type FakeLink, join, record, started, text } from "../../../test/fakeNodes.ts"
import { turn } from "../../../test/runFixture.ts"
import type { RunEventView } from "../../admin/RunEventView.ts"
import { NodeRegistry } from "../../node/NodeRegistry.ts"
import { makeHttpClient } from "./httpClient.ts"

const echo = { adapter: "mock", target: "echo", messages: [{ role: "user", content: "hello" }] } as const

const client = (key?: string) =>
  AdminServer.useSync(({ origin }) =>
    makeHttpClient({ url: new URL(origin), key: key === undefined ? undefined : Redacted.make(key) })
  )

const eventually = Effect.fnUntraced(function* (what: string, so: () => boolean) {
  for (let turns = 0; turns < 10_000; turns++) {
    if (so()) return
    yield* turn
  }
  throw new Error(`never came: ${what}`)
})

const given = (link: FakeLink) => eventually("a run", () => link.sent.length > 0)

/** A server that is no edge, or one that breaks. */
const serverThat = (answer: (response: import("node:http").ServerResponse) => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const server = createServer((_request, response) => answer(response))
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    ),
    (server) =>
      makeHttpClient({
        url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
        key: undefined
      })
  )

describe("the client of a running edge", () => {
  it.live("understands every answer", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const edge = yield* client()
      assert.deepStrictEqual(
        (yield* edge.nodes).map(({ alias, state }) => [alias, state]),
        [["a", "routable"]]
      )
      assert.strictEqual((yield* edge.setCordoned("a", true)).state, "cordoned")
      assert.strictEqual((yield* edge.node("a")).cordoned, true)
      assert.strictEqual((yield* edge.setCordoned("a", false)).state, "routable")
      assert.strictEqual((yield* edge.explain({ adapter: "mock", target: "echo" })).chosen, "a")
      const run = yield* edge.submit(echo)
      assert.deepStrictEqual(
        (yield* edge.runs({ active: true, limit: 1 })).map(({ id }) => id),
        [run.id]
      )
      link.say(link.last, started, text("héllo"), { type: "usage", usage: { outputTokens: 2 } }, completed)
      const events = yield* Stream.runCollect(run.events)
      assert.deepStrictEqual(
        events.map(({ type }) => type),
        ["dispatched", "started", "delta", "usage", "completed"]
      )
      assert.deepStrictEqual(events[2], { seq: 3, type: "delta", choice: 0, kind: "text", text: "héllo" })
      assert.strictEqual((yield* edge.run(run.id)).phase, "completed")
      assert.strictEqual((yield* edge.cancel(run.id)).phase, "completed")
      assert.strictEqual((yield* edge.drainNode("a")).cordoned, true)
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("hands on each event as it comes", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const edge = yield* client()
      const run = yield* edge.submit(echo)
      const seen: Array<RunEventView["type"]> = []
      const watching = yield* Effect.forkChild(
        Stream.runForEach(run.events, ({ type }) => Effect.sync(() => seen.push(type)))
      )
      yield* eventually("the dispatch", () => seen.includes("dispatched"))
      link.say(link.last, started, text("x"))
      yield* eventually("a delta", () => seen.includes("delta"))
      link.say(link.last, completed)
      yield* Fiber.join(watching)
      assert.strictEqual(seen.at(-1), "completed")
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("leaves the run when its stream is left, by which the edge cancels it", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const run = yield* Effect.flatMap(client(), (edge) => edge.submit(echo))
      yield* given(link)
      yield* Stream.runDrain(Stream.take(run.events, 1))
      yield* eventually("a cancel", () => link.cancels.length === 1)
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("is told of a cancel by somebody else", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const edge = yield* client()
      const run = yield* edge.submit(echo)
      yield* edge.cancel(run.id)
      link.say(link.last, cancelled)
      const events = yield* Stream.runCollect(run.events)
      assert.strictEqual(events.at(-1)?.type, "cancelled")
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("hands on why the edge refuses, with the time to wait", () =>
    Effect.gen(function* () {
      const edge = yield* client()
      const nobody = yield* Effect.flip(edge.submit(echo))
      assert.strictEqual(nobody.code, "no_node_available")
      assert.isAbove(nobody.retryAfterMs ?? 0, 0)
      const unknown = yield* Effect.flip(edge.node("x/../y?z"))
      assert.deepStrictEqual(
        [unknown.code, unknown.message],
        ["not_found", `there is no node "x/../y?z" in the configuration`]
      )
      assert.strictEqual((yield* Effect.flip(edge.run("nope"))).code, "not_found")
    }).pipe(Effect.provide(adminFixture([record("a", { targets: ["echo"] })])))
  )

  it.live("leaves a detached run to itself, reads its events later, and says why it cancels", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const edge = yield* client()
      const run = yield* edge.submitDetached(echo)
      assert.strictEqual(run.detached, true)
      yield* given(link)
      const seen: Array<string> = []
      const reading = yield* Effect.forkChild(
        Stream.runForEach(edge.events(run.id, 1), ({ seq, type }) =>
          Effect.sync(() => seen.push(`${seq} ${type}`))
        ),
        { startImmediately: true }
      )
      link.say(link.last, started, text("hi"))
      yield* eventually("the first events", () => seen.length === 2)
      yield* edge.cancel(run.id, "no longer wanted")
      assert.strictEqual(link.cancels[0]?.reason, "no longer wanted, asked for over HTTP")
      link.say(link.last, cancelled)
      yield* Fiber.join(reading)
      assert.deepStrictEqual(seen, ["2 started", "3 delta", "4 cancelled"])
      const unknown = yield* Effect.flip(Stream.runDrain(edge.events("nope", 0)))
      assert.strictEqual(unknown.code, "not_found")
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("shows its key, and hands on that it is wrong without saying it", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flatMap(client("sesame"), (edge) => edge.nodes)).length, 1)
      const refused = yield* Effect.flip(Effect.flatMap(client("sesam"), (edge) => edge.nodes))
      assert.strictEqual(refused.code, "invalid_api_key")
      assert.notInclude(refused.message, "sesam")
      const missing = yield* Effect.flip(Effect.flatMap(client(), (edge) => edge.nodes))
      assert.strictEqual(missing.code, "invalid_api_key")
      assert.match(refused.message, /does not accept the API key that was sent/)
      assert.match(missing.message, /wants an API key and none was sent/)
      for (const { message } of [refused, missing]) {
        assert.include(message, "IOP_EDGE_KEY")
        assert.include(message, "--key-file")
      }
    }).pipe(Effect.provide(adminFixture([record("a")], { keys: { laptop: "sesame" } })))
  )
})

describe("an edge that can't be reached", () => {
  it.live("is said to be so, with its address", () =>
    Effect.gen(function* () {
      const port = yield* AdminServer.useSync((server) => server.port).pipe(Effect.provide(adminFixture([])))
      const gone = makeHttpClient({ url: new URL(`http://127.0.0.1:${port}`), key: undefined })
      const problem = yield* Effect.flip(gone.nodes)
      assert.strictEqual(problem.code, "unreachable")
      assert.match(
        problem.message,
        /^cannot reach the edge at http:\/\/127\.0\.0\.1:\d+: nothing listens there;/
      )
    })
  )

  it.live("may be something else", () =>
    Effect.gen(function* () {
      const page = yield* serverThat((response) => response.end("<html>hello</html>"))
      assert.strictEqual((yield* Effect.flip(page.nodes)).code, "unreachable")
      const missing = yield* serverThat((response) => response.writeHead(404).end("not found"))
      assert.strictEqual((yield* Effect.flip(missing.nodes)).code, "unreachable")
    })
  )

  it.live("may go away in the middle of a run: a stream without its end is an error", () =>
    Effect.gen(function* () {
      const head = { "content-type": "text/event-stream", "x-iop-run-id": "r1" }
      const event = `id: 1\ndata: {"seq":1,"type":"started"}\n\n`
      for (const end of ["end", "destroy"] as const) {
        const edge = yield* serverThat((response) => {
          response.writeHead(200, head)
          response.write(event, () => response[end]())
        })
        const run = yield* edge.submit(echo)
        const seen: Array<string> = []
        const problem = yield* Effect.flip(
          Stream.runForEach(run.events, ({ type }) => Effect.sync(() => seen.push(type)))
        )
        assert.deepStrictEqual([run.id, seen, problem.code], ["r1", ["started"], "unreachable"])
        assert.match(problem.message, /broke before the run's end$/)
      }
    })
  )

  it.live("may end the reader alone, and says why", () =>
    Effect.gen(function* () {
      const edge = yield* serverThat((response) => {
        response.writeHead(200, { "content-type": "text/event-stream", "x-iop-run-id": "r1" })
        response.end(`event: error\ndata: {"error":{"code":"slow_consumer","message":"too slow"}}\n\n`)
      })
      const run = yield* edge.submit(echo)
      const problem = yield* Effect.flip(Stream.runDrain(run.events))
      assert.deepStrictEqual([problem.code, problem.message], ["slow_consumer", "too slow"])
    })
  )
})
