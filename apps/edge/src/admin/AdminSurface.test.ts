import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AdminServer, type Answer, adminFixture } from "../../test/adminFixture.ts"
import { completed, type FakeLink, join, record, started, text } from "../../test/fakeNodes.ts"
import { turn } from "../../test/runFixture.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { RunService } from "../run/RunService.ts"
import { AdminApi } from "./AdminApi.ts"

const echo = { adapter: "mock", target: "echo", prompt: "hello" }

const call = (
  ...args: Parameters<AdminServer["Service"]["call"]>
): Effect.Effect<Answer, never, AdminServer> => AdminServer.use((server) => server.call(...args))

/** The next piece of a streamed answer; undefined at its end. */
const reading = (response: Response) => {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (reader === undefined) throw new Error("the answer has no body")
  let seen = ""
  const until = (wanted: string) =>
    Effect.promise(async () => {
      while (!seen.includes(wanted)) {
        const { value, done } = await reader.read()
        if (done) throw new Error(`the stream ended without ${wanted}: ${seen}`)
        seen += value
      }
      return seen
    })
  return { until, cancel: Effect.promise(() => reader.cancel()) }
}

/** Turns of the event loop until something is so. */
const eventually = Effect.fnUntraced(function* (what: string, so: () => boolean) {
  for (let turns = 0; turns < 10_000; turns++) {
    if (so()) return
    yield* turn
  }
  throw new Error(`never came: ${what}`)
})

/** Lets each run that the link is given answer `hello` and end. */
const answering = (link: FakeLink) =>
  Effect.gen(function* () {
    yield* eventually("a run", () => link.sent.length > 0)
    link.say(link.last, started, text("hel"), text("lo"), completed)
  })

describe("nodes", () => {
  it.live("are listed, connected or not, with what they offer and why they don't", () =>
    Effect.gen(function* () {
      join(yield* NodeRegistry, "a", ["echo", "count"])
      const { status, body } = yield* call("GET", "/nodes")
      assert.strictEqual(status, 200)
      const nodes = body["nodes"] as ReadonlyArray<Record<string, unknown>>
      assert.deepStrictEqual(
        nodes.map(({ id, alias, state, reason, slots_in_use }) => ({
          id,
          alias,
          state,
          reason,
          slots_in_use
        })),
        [
          { id: "a", alias: "first", state: "routable", reason: "takes runs", slots_in_use: 0 },
          {
            id: "b",
            alias: "b",
            state: "offline",
            reason: "has not connected since the edge started",
            slots_in_use: 0
          }
        ]
      )
      assert.deepStrictEqual(nodes[0]?.["adapters"], [
        {
          name: "mock",
          type: "mock",
          state: "ready",
          reason: "",
          slots: { total: 4, in_use: 0 },
          targets: [
            { name: "echo", capabilities: [] },
            { name: "count", capabilities: [] }
          ],
          circuit: { state: "closed" }
        }
      ])
    }).pipe(Effect.provide(adminFixture([record("a", { alias: "first" }), record("b")])))
  )

  it.live("are found by id and alias", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* call("GET", "/nodes/a")).body["id"], "a")
      assert.strictEqual((yield* call("GET", "/nodes/first")).body["id"], "a")
      const { status, problem } = yield* call("GET", "/nodes/c%0d%0a%22")
      assert.strictEqual(status, 404)
      assert.deepStrictEqual(problem, {
        code: "not_found",
        message: String.raw`there is no node "c\r\n\"" in the configuration`
      })
    }).pipe(Effect.provide(adminFixture([record("a", { alias: "first" })])))
  )

  it.live("are cordoned, uncordoned and drained", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      assert.strictEqual((yield* call("POST", "/nodes/a/cordon", {})).body["state"], "cordoned")
      assert.strictEqual(
        (yield* call("POST", "/explain", { adapter: "mock", target: "echo" })).body["chosen"],
        undefined
      )
      assert.strictEqual((yield* call("POST", "/nodes/a/uncordon", {})).body["state"], "routable")
      assert.isFalse(link.drained)
      // Nothing to parse needs no type; something does.
      assert.strictEqual((yield* call("POST", "/nodes/a/cordon")).body["state"], "cordoned")
      const typed = { body: "{}", headers: { "content-type": "text/plain" } }
      assert.strictEqual((yield* call("POST", "/nodes/a/uncordon", undefined, typed)).status, 415)
      assert.strictEqual((yield* call("POST", "/nodes/a/uncordon")).body["state"], "routable")
      assert.strictEqual((yield* call("POST", "/nodes/a/drain", {})).body["cordoned"], true)
      assert.isTrue(link.drained)
      assert.strictEqual((yield* call("POST", "/nodes/nobody/drain", {})).status, 404)
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )
})

describe("a watched run", () => {
  it.live("streams its events, numbered, with its id in a header", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const [answer] = yield* Effect.all([call("POST", "/runs?events=true", echo), answering(link)], {
        concurrency: 2
      })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.headers.get("content-type"), "text/event-stream")
      const id = answer.headers.get("x-iop-run-id") ?? ""
      assert.match(
        answer.text,
        /^id: 1\ndata: \{"seq":1,"type":"dispatched","node":"a","attempt":1,"queue_ms":[\d.]+\}\n\nid: 2\ndata: \{"seq":2,"type":"started"\}\n\nid: 3\ndata: \{"seq":3,"type":"delta","choice":0,"kind":"text","text":"hel"\}\n\nid: 4\ndata: \{"seq":4,"type":"delta","choice":0,"kind":"text","text":"lo"\}\n\nid: 5\ndata: \{"seq":5,"type":"completed","finish_reason":"stop"\}\n\n$/
      )
      const run = (yield* call("GET", `/runs/${id}`)).body
      assert.deepStrictEqual(
        [run["phase"], run["caller"], run["node"], run["events"], run["detached"]],
        ["completed", "admin", "a", 5, false]
      )
      const watchedAgain = yield* call("GET", `/runs/${id}/events?after=3`)
      assert.deepStrictEqual(watchedAgain.text.match(/^id: \d+$/gm), ["id: 4", "id: 5"])
      const resumed = yield* call("GET", `/runs/${id}/events`, undefined, {
        headers: { "last-event-id": "4" }
      })
      assert.deepStrictEqual(resumed.text.match(/^id: \d+$/gm), ["id: 5"])
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("CN4 is cancelled when its caller hangs up", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const server = yield* AdminServer
      const stream = reading(yield* server.open("POST", "/runs?events=true", echo))
      yield* stream.until("dispatched")
      assert.strictEqual(link.cancels.length, 0)
      yield* stream.cancel
      yield* eventually("a cancel", () => link.cancels.length === 1)
      assert.strictEqual(link.cancels[0]?.code, "caller")
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("CN9 goes on without its caller when it is detached", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const server = yield* AdminServer
      const response = yield* server.open(
        "POST",
        "/runs",
        { ...echo, detached: true },
        {
          headers: { "content-type": "application/json", accept: "text/event-stream" }
        }
      )
      const id = response.headers.get("x-iop-run-id") ?? ""
      const stream = reading(response)
      yield* stream.until("dispatched")
      yield* stream.cancel
      link.say(link.last, started, text("late"), completed)
      assert.include((yield* call("GET", `/runs/${id}/events`)).text, `"text":"late"`)
      assert.strictEqual((yield* call("GET", `/runs/${id}`)).body["phase"], "completed")
      assert.deepStrictEqual(link.cancels, [])
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("HT13 has a comment after each silence", () =>
    Effect.gen(function* () {
      join(yield* NodeRegistry, "a")
      const server = yield* AdminServer
      const stream = reading(yield* server.open("POST", "/runs?events=true", echo))
      const seen = yield* stream.until(": still there\n\n: still there\n\n")
      assert.match(seen, /^id: 1\n/)
      yield* stream.cancel
    }).pipe(Effect.provide(adminFixture([record("a")], { admin: { sseCommentMs: 5 } })))
  )

  it.live("keeps a caller who has nothing to take for longer than the write deadline", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const server = yield* AdminServer
      const stream = reading(yield* server.open("POST", "/runs?events=true", echo))
      yield* stream.until(": still there")
      yield* answering(link)
      assert.match(yield* stream.until('"completed"'), /"text":"hel"/)
    }).pipe(
      Effect.provide(
        adminFixture([record("a")], { admin: { sseCommentMs: 100 }, listener: { writeDeadlineMs: 10 } })
      )
    )
  )
})

describe("a run that nobody watches", () => {
  it.live("goes on by itself, is listed, cancelled, and cancelled again", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const submitted = yield* call("POST", "/runs", echo)
      assert.strictEqual(submitted.status, 201)
      const id = String(submitted.body["id"])
      assert.strictEqual(submitted.headers.get("location"), `/admin/v1/runs/${id}`)
      assert.strictEqual(submitted.body["detached"], true)
      const listed = yield* call("GET", "/runs?active=true&limit=5")
      assert.deepStrictEqual(
        (listed.body["runs"] as ReadonlyArray<{ id: string }>).map((run) => run.id),
        [id]
      )
      const cancelled = yield* call("POST", `/runs/${id}/cancel`, {})
      assert.strictEqual(cancelled.body["phase"], "cancelling")
      assert.strictEqual(link.cancels[0]?.reason, "asked for over HTTP")
      link.say(link.last, { type: "cancelled", reason: "as asked" })
      assert.strictEqual((yield* call("POST", `/runs/${id}/cancel`, {})).body["phase"], "cancelled")
      assert.strictEqual(link.cancels.length, 1)
      assert.strictEqual((yield* call("GET", "/runs?active=true")).text, `{"runs":[]}`)
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("can't be one that ends with its caller", () =>
    Effect.gen(function* () {
      join(yield* NodeRegistry, "a")
      const { status, problem } = yield* call("POST", "/runs", { ...echo, detached: false })
      assert.strictEqual(status, 400)
      assert.match(problem.message, /^detached: .*events=true$/)
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("takes any input there is, as protobuf's JSON", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a", ["embed"])
      yield* call("POST", "/runs", {
        adapter: "mock",
        target: "embed",
        input: { embed: { items: [{ text: "one" }, { tokens: { tokens: [1, 2] } }], dimensions: 8 } }
      })
      const { kind } = link.last.dispatch.input
      assert.strictEqual(kind.case, "embed")
      assert.strictEqual(kind.case === "embed" && kind.value.items[1]?.content.case, "tokens")
      const refused = yield* call("POST", "/runs", {
        adapter: "mock",
        target: "embed",
        input: { embed: { itemz: [] } }
      })
      assert.strictEqual(refused.status, 400)
      assert.match(refused.problem.message, /^input: .*"itemz" is unknown/)
      const quoted = yield* call("POST", "/runs", {
        adapter: "mock",
        target: "embed",
        input: { prompt: 'a "secret" prompt' }
      })
      assert.match(quoted.problem.message, /^input: cannot decode .*PromptInput.*: a text that does not fit$/)
      const nothing = yield* call("POST", "/runs", { adapter: "mock", target: "embed", input: {} })
      assert.strictEqual(nothing.problem.message, "input: one of chat, prompt and embed must be given")
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("gets texts that the wire can hold: a lone surrogate is replaced", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      yield* call("POST", "/runs", {
        adapter: "mock",
        target: "echo",
        messages: [{ role: "user", content: "a\ud800b" }]
      })
      const { kind } = link.last.dispatch.input
      const part = kind.case === "chat" ? kind.value.messages[0]?.parts[0]?.content : undefined
      assert.strictEqual(part?.case === "text" ? part.value : undefined, "a\ufffdb")
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )
})

describe("a bad request", () => {
  const cases: ReadonlyArray<[string, unknown, RegExp]> = [
    ["an unknown field", { ...echo, promt: "x" }, /^promt: there is no such field$/],
    [
      "a wrong field far inside",
      { adapter: "mock", target: "echo", messages: [{ role: "pirate", content: "x" }] },
      /^messages\.0\.role: expected/
    ],
    [
      "no input",
      { adapter: "mock", target: "echo" },
      /^exactly one of prompt, messages and input must be given$/
    ],
    ["two inputs", { ...echo, messages: [{ role: "user", content: "x" }] }, /^exactly one of/],
    ["no adapter", { target: "echo", prompt: "x" }, /^adapter: /],
    ["a list for a body", [], /^body: /],
    ["a time that is none", { ...echo, timeout_ms: 0 }, /^timeout_ms: /],
    ["where things go", { ...echo, base_url: "http://169.254.169.254" }, /^base_url: there is no such field$/]
  ]
  for (const [what, body, message] of cases) {
    it.live(`is told its mistake: ${what}`, () =>
      Effect.gen(function* () {
        join(yield* NodeRegistry, "a")
        const { status, problem } = yield* call("POST", "/runs", body)
        assert.strictEqual(status, 400)
        assert.strictEqual(problem.code, "invalid_request")
        assert.match(problem.message, message)
        assert.strictEqual(yield* RunService.use((runs) => Effect.succeed(runs.list().length)), 0)
      }).pipe(Effect.provide(adminFixture([record("a")])))
    )
  }

  it.live("HT15 has its status and the right methods, as JSON", () =>
    Effect.gen(function* () {
      const nowhere = yield* call("GET", "/nope")
      assert.deepStrictEqual([nowhere.status, nowhere.problem.code], [404, "not_found"])
      const wrong = yield* call("DELETE", "/nodes")
      assert.deepStrictEqual([wrong.status, wrong.problem.code], [405, "method_not_allowed"])
      assert.strictEqual(wrong.headers.get("allow"), "GET, HEAD, OPTIONS")
      const both = yield* call("OPTIONS", "/runs")
      assert.deepStrictEqual([both.status, both.headers.get("allow")], [204, "GET, POST, HEAD, OPTIONS"])
      const head = yield* call("HEAD", "/nodes")
      assert.deepStrictEqual([head.status, head.text], [200, ""])
      assert.strictEqual((yield* call("GET", "/runs?limit=all")).status, 400)
      assert.strictEqual((yield* call("GET", "/runs/nope/events?after=-1")).status, 400)
    }).pipe(Effect.provide(adminFixture([record("a")])))
  )

  it.live("that the state of things does not allow has its status and a time to wait", () =>
    Effect.gen(function* () {
      const runs = yield* RunService
      const nobody = yield* call("POST", "/runs", { ...echo, target: "nope" })
      assert.deepStrictEqual([nobody.status, nobody.problem.code], [404, "target_not_found"])
      join(yield* NodeRegistry, "a")
      yield* call("POST", "/runs", echo)
      const full = yield* call("POST", "/runs", echo)
      assert.deepStrictEqual([full.status, full.problem.code], [503, "queue_full"])
      assert.match(full.headers.get("retry-after") ?? "", /^[1-9]\d*$/)
      yield* Effect.forkChild(runs.drain, { startImmediately: true })
      const late = yield* call("POST", "/runs?events=true", echo)
      assert.deepStrictEqual([late.status, late.problem.code], [503, "draining"])
      assert.match(late.headers.get("retry-after") ?? "", /^[1-9]\d*$/)
    }).pipe(
      Effect.provide(
        adminFixture([record("a", { slots: 1, targets: ["echo"] })], { limits: { queueLimit: 0 } })
      )
    )
  )

  it.live("for events that are no longer kept is told since when they are", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const { body } = yield* call("POST", "/runs", echo)
      const id = String(body["id"])
      link.say(
        link.last,
        started,
        ...Array.from({ length: 1000 }, (_, index) => text(String(index))),
        completed
      )
      const { status, problem } = yield* call("GET", `/runs/${id}/events`)
      assert.deepStrictEqual([status, problem.code], [409, "too_late"])
      const oldest = Number(/keeps events from (\d+)/.exec(problem.message)?.[1])
      assert.isAbove(oldest, 1)
      assert.match((yield* call("GET", `/runs/${id}/events?after=${oldest - 1}`)).text, /"type":"completed"/)
    }).pipe(
      Effect.provide(
        adminFixture([record("a")], {
          limits: { runWindowBytes: 1_000_000, relay: { logBytes: 2048, consumerMs: 1000 } }
        })
      )
    )
  )

  it.live("that meets a fault of the edge gets a number to ask for and nothing else", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const node = registry.entry("a")
      if (node === undefined) throw new Error("no node")
      Object.defineProperty(node, "status", {
        get: () => {
          throw new Error("secret detail")
        }
      })
      node.link = join(registry, "b")
      const { status, problem, headers } = yield* call("GET", "/nodes", undefined, {
        headers: { "x-request-id": "find-me" }
      })
      assert.strictEqual(status, 500)
      assert.deepStrictEqual(problem, {
        code: "internal",
        message: "internal error; the log has it under request find-me"
      })
      assert.strictEqual(headers.get("x-request-id"), "find-me")
    }).pipe(Effect.provide(adminFixture([record("a"), record("b")])))
  )
})

describe("rights", () => {
  it.live("HT7 come from a key, whose holder is named in the run", () =>
    Effect.gen(function* () {
      join(yield* NodeRegistry, "a")
      const none = yield* call("GET", "/nodes")
      const wrong = yield* call("GET", "/nodes", undefined, { headers: { authorization: "Bearer sesam" } })
      assert.deepStrictEqual([none.status, wrong.status], [401, 401])
      assert.strictEqual(none.text, wrong.text)
      assert.strictEqual(none.problem.code, "invalid_api_key")
      assert.notInclude(wrong.text, "sesam")
      const good = yield* call("POST", "/runs", echo, {
        headers: { "content-type": "application/json", authorization: "Bearer sesame" }
      })
      assert.deepStrictEqual([good.status, good.body["caller"]], [201, "laptop"])
      assert.strictEqual((yield* call("GET", "/openapi.json")).status, 401)
    }).pipe(Effect.provide(adminFixture([record("a")], { keys: { laptop: "sesame" } })))
  )
})

describe("a cancel", () => {
  it.live("says who asked, and why in their words, within bounds", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const headers = { authorization: "Bearer sesame", "content-type": "application/json" }
      const id = String((yield* call("POST", "/runs", echo, { headers })).body["id"])
      for (const reason of ["", "x".repeat(201), 5]) {
        const refused = yield* call("POST", `/runs/${id}/cancel`, { reason }, { headers })
        assert.strictEqual(refused.status, 400)
        assert.match(refused.problem.message, /^reason: /)
      }
      yield* call("POST", `/runs/${id}/cancel`, { reason: "too slow" }, { headers })
      assert.deepStrictEqual(
        link.cancels.map(({ reason }) => reason),
        ["too slow, asked for by laptop"]
      )
    }).pipe(Effect.provide(adminFixture([record("a")], { keys: { laptop: "sesame" } })))
  )
})

describe("the OpenAPI document", () => {
  it.live("says how a key is sent, and nothing that only its framework understands", () =>
    Effect.gen(function* () {
      const { body, text } = yield* call("GET", "/openapi.json")
      const { securitySchemes } = body["components"] as { securitySchemes: Record<string, object> }
      assert.deepInclude(securitySchemes["bearer"], { type: "http", scheme: "bearer" })
      assert.deepInclude(securitySchemes["apiKey"], { type: "apiKey", in: "header", name: "x-api-key" })
      assert.deepStrictEqual(body["security"], [{ bearer: [] }, { apiKey: [] }, {}])
      assert.notMatch(text, /x-effect|causeSchema|fiberId/)
    }).pipe(Effect.provide(adminFixture([])))
  )

  it.live("describes every path, its errors included", () =>
    Effect.gen(function* () {
      const { body, status } = yield* call("GET", "/openapi.json")
      assert.strictEqual(status, 200)
      const paths = body["paths"] as Record<string, Record<string, { responses: Record<string, unknown> }>>
      const described = Object.entries(paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`)
      )
      const declared = Object.values(AdminApi.groups).flatMap((group) =>
        Object.values(group.endpoints).map(
          ({ method, path }) => `${method} ${path.replace(/:([a-z]+)/g, "{$1}")}`
        )
      )
      assert.deepStrictEqual(described.sort(), declared.sort())
      assert.strictEqual(declared.length, 11)
      assert.containsAllKeys(paths["/admin/v1/runs"]?.["post"]?.responses, [
        "200",
        "201",
        ...["400", "401", "404", "409", "413", "415", "429", "502", "503", "504"]
      ])
    }).pipe(Effect.provide(adminFixture([])))
  )
})
