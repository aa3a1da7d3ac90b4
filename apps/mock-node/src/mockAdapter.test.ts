// Each script, as it goes over a link.

import { create, type JsonObject } from "@bufbuild/protobuf"
import { assert, describe, it } from "@effect/vitest"
import { testAdapter } from "@iop/node-sdk/testkit/testAdapter"
import { textDelta } from "@iop/node-sdk/textDelta"
import { Role, RunInputSchema } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { chatInput } from "@iop/platform-common/protocol/runInputText"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { mockAdapter } from "./mockAdapter.ts"
import { mockScripts } from "./mockScripts.ts"
import { countDelta } from "./scripts/count.ts"
import { vectorOf } from "./scripts/embed.ts"
import { UNICODE_TEXT } from "./scripts/unicode.ts"

const start = (scripts: JsonObject = {}, targets: ReadonlyArray<string> = [], slots = 4) =>
  testAdapter(mockAdapter(), {
    slots,
    targets: [...targets],
    settings: { case: "mock", value: { seed: 7n, scripts } }
  })

const texts = (events: ReadonlyArray<NodeRunEvent>) =>
  events.flatMap((event) => (event.type === "delta" && event.kind === "text" ? [event.text] : []))

const textOf = (events: ReadonlyArray<NodeRunEvent>) => texts(events).join("")

const ended = (events: ReadonlyArray<NodeRunEvent>) => events.at(-1)

describe("targets", () => {
  it.effect("are all scripts by default, with what they can do", () =>
    Effect.gen(function* () {
      const { status } = yield* start()
      assert.deepStrictEqual(
        status.adapters[0]?.targets.map(({ capabilities, name }) => [name, [...capabilities]]),
        Array.from(mockScripts, ([name, { capabilities }]) => [name, [...capabilities]])
      )
    })
  )

  it.effect("have names of their own when the configuration says which script they play", () =>
    Effect.gen(function* () {
      const { run, status } = yield* start({ "qwen3-8b": { script: "lorem", tokens: 3, interval_ms: 0 } }, [
        "qwen3-8b"
      ])
      assert.deepStrictEqual(
        status.adapters[0]?.targets.map(({ name }) => name),
        ["qwen3-8b"]
      )
      assert.strictEqual(texts(yield* run({ target: "qwen3-8b" }).toEnd).length, 3)
    })
  )

  it.effect("without a script make the adapter unavailable, with the reason", () =>
    Effect.gen(function* () {
      const { status } = yield* start({}, ["ehco"])
      assert.match(
        status.adapters[0]?.reason ?? "",
        /^target ehco has no script ehco; there are echo, lorem,/
      )
    })
  )
})

describe("parameters", () => {
  it.effect("of the prompt come before those of the run, and those before the configuration's", () =>
    Effect.gen(function* () {
      const { run } = yield* start({ lorem: { tokens: 2, interval_ms: 0 } })
      const tokens = (text: string, parameters?: JsonObject) => {
        const input = chatInput(text)
        if (parameters !== undefined) input.parameters = parameters
        return Effect.map(run({ target: "lorem", input }).toEnd, (events) => texts(events).length)
      }
      assert.strictEqual(yield* tokens("hi"), 2)
      assert.strictEqual(yield* tokens("hi", { tokens: 3 }), 3)
      assert.strictEqual(yield* tokens('hi {"tokens": 4}', { tokens: 3 }), 4)
    })
  )

  it.effect("that are wrong fail the run and are named", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      assert.deepStrictEqual(yield* run({ target: "lorem", input: 'x {"tokens": -1}' }).toEnd, [
        {
          type: "failed",
          code: "invalid_input",
          message: "parameter tokens of the mock adapter must be a whole number from 0 to 1000000",
          retryable: false
        }
      ])
    })
  )

  it.effect("at the end of a prompt are no part of it, other objects are", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      assert.strictEqual(
        textOf(yield* run({ target: "echo", input: 'say this {"size": 1}' }).toEnd),
        "say this"
      )
      assert.strictEqual(
        textOf(yield* run({ target: "echo", input: 'json: {"a": {"size": 1}}' }).toEnd),
        'json: {"a": {"size": 1}}'
      )
    })
  )
})

describe("echo", () => {
  const prompt = "안녕 👨‍👩‍👧‍👦, héllo 𝒳 world".repeat(20)

  it.effect("says the prompt again, the same way each time, never cutting a character", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      const first = yield* run({ target: "echo", input: prompt }).toEnd
      assert.strictEqual(textOf(first), prompt)
      assert.isTrue(texts(first).every((text) => text.isWellFormed()))
      assert.isAbove(texts(first).length, 50)
      assert.deepStrictEqual(yield* run({ target: "echo", input: prompt }).toEnd, first)
      const other = yield* run({ target: "echo", input: `${prompt} {"seed": 8}` }).toEnd
      assert.strictEqual(textOf(other), prompt)
      assert.notDeepEqual(texts(other), texts(first))
    })
  )

  it.effect("counts words in and deltas out", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      const events = yield* run({ target: "echo", input: "one two three" }).toEnd
      const usage = { inputTokens: 3, outputTokens: texts(events).length }
      assert.deepStrictEqual(events.slice(-2), [
        { type: "usage", usage },
        { type: "completed", finishReason: "stop", usage }
      ])
    })
  )
})

describe("pace", () => {
  it.effect("lorem says a word per interval", () =>
    Effect.gen(function* () {
      const { link, run } = yield* start()
      const lorem = run({ target: "lorem", input: '{"tokens": 3, "interval_ms": 100}' })
      assert.strictEqual((yield* lorem.next).type, "started")
      for (let word = 1; word <= 3; word++) {
        yield* TestClock.adjust("99 millis")
        yield* link.ping
        assert.strictEqual(texts(lorem.received).length, word - 1)
        yield* TestClock.adjust("1 millis")
        assert.strictEqual((yield* lorem.next).type, "delta")
      }
      assert.strictEqual(ended(yield* lorem.toEnd)?.type, "completed")
    })
  )

  it.effect("slow-start says nothing at all before its time", () =>
    Effect.gen(function* () {
      const { link, run } = yield* start()
      const slow = run({ target: "slow-start", input: 'hello {"start_ms": 5000, "delay_ms": 2000}' })
      yield* TestClock.adjust("4999 millis")
      yield* link.ping
      assert.deepStrictEqual(slow.received, [])
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* slow.next).type, "started")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(textOf(yield* slow.toEnd), "hello")
    })
  )
})

describe("failures", () => {
  it.effect("fail-first fails retryably before its first delta", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      assert.deepStrictEqual(yield* run({ target: "fail-first" }).toEnd, [
        {
          type: "failed",
          code: "adapter_error",
          message: "the script fails before its first delta, as it is meant to",
          retryable: true,
          backendStatus: 500
        }
      ])
      const slow = yield* run({ target: "fail-first", input: '{"fast": false, "retryable": false}' }).toEnd
      assert.deepStrictEqual(
        slow.map((event) => (event.type === "failed" ? [event.type, event.retryable] : event.type)),
        ["started", ["failed", false]]
      )
    })
  )

  it.effect("fail-first succeeds after as many failures as it was told", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      const input = 'twice and then well {"times": 2}'
      const outcomes: Array<string | undefined> = []
      for (let attempt = 1; attempt <= 4; attempt++) {
        outcomes.push(ended(yield* run({ target: "fail-first", input, attempt }).toEnd)?.type)
      }
      assert.deepStrictEqual(outcomes, ["failed", "failed", "completed", "failed"])
    })
  )

  it.effect("fail-mid fails after its deltas", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      const events = yield* run({ target: "fail-mid", input: '{"tokens": 2}' }).toEnd
      assert.deepStrictEqual(events.slice(0, 3), [{ type: "started" }, textDelta("1 "), textDelta("2 ")])
      assert.deepInclude(ended(events), { type: "failed", code: "adapter_error" })
    })
  )
})

describe("never", () => {
  it.effect("answers nothing but a cancel", () =>
    Effect.gen(function* () {
      const { link, run } = yield* start()
      const silent = run({ target: "never" })
      yield* TestClock.adjust("10 seconds")
      yield* link.ping
      assert.deepStrictEqual(silent.received, [])
      link.cancel(silent)
      assert.deepStrictEqual(yield* silent.toEnd, [{ type: "cancelled", reason: "cancelled by the test" }])
    })
  )

  it.effect("CN3 doesn't answer a cancel either, when it is told so, and keeps its slot", () =>
    Effect.gen(function* () {
      const { link, run } = yield* start({}, [], 1)
      const stubborn = run({ target: "never", input: '{"ignore_cancel": true, "start": true}' })
      assert.strictEqual((yield* stubborn.next).type, "started")
      link.cancel(stubborn)
      yield* TestClock.adjust("10 seconds")
      yield* link.ping
      assert.strictEqual(stubborn.received.length, 1)
      const [refused] = yield* run({ target: "echo" }).toEnd
      assert.deepInclude(refused, { type: "failed", code: "rejected", retryable: true })
    })
  )
})

describe("output", () => {
  it.effect("count's deltas are a function of the run and their number", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      const events = yield* run({ target: "count", runId: "r-9", input: '{"tokens": 5}' }).toEnd
      assert.deepStrictEqual(
        texts(events),
        [0, 1, 2, 3, 4].map((number) => countDelta("r-9", number))
      )
      assert.notStrictEqual(countDelta("r-9", 1).slice(2), countDelta("r-8", 1).slice(2))
    })
  )

  it.effect("flood goes as fast as acknowledgements allow and no faster", () =>
    Effect.gen(function* () {
      const { link, run } = yield* start()
      const flood = run({ target: "flood", autoAck: false, input: '{"tokens": 4000, "size": 1000}' })
      yield* link.ping
      assert.isAtMost(flood.maxUnackedBytes, 256 * 1024)
      flood.autoAck = true
      flood.ack()
      const events = yield* flood.toEnd
      const deltas = texts(events)
      assert.strictEqual(deltas.length, 4000)
      assert.isTrue(deltas.every((text, number) => text.length === 1000 && text.startsWith(`${number} `)))
    })
  )

  it.effect("unicode says hard text in small pieces", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      const events = yield* run({ target: "unicode" }).toEnd
      assert.strictEqual(textOf(events), UNICODE_TEXT)
      assert.isTrue(texts(events).every((text) => Array.from(text).length <= 2))
    })
  )

  it.effect("think thinks, then answers", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      const events = yield* run({ target: "think", input: "why" }).toEnd
      const kinds = events.flatMap((event) => (event.type === "delta" ? [event.kind] : []))
      assert.deepStrictEqual([...new Set(kinds)], ["reasoning", "text"])
      assert.strictEqual(kinds.lastIndexOf("reasoning") < kinds.indexOf("text"), true)
      assert.strictEqual(textOf(events), "why")
    })
  )

  it.effect("tools calls the tool that the run offers, with JSON in pieces", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      const input = create(RunInputSchema, {
        kind: {
          case: "chat",
          value: {
            messages: [{ role: Role.USER, parts: [{ content: { case: "text", value: "weather?" } }] }],
            tools: [{ kind: { case: "function", value: { name: "get_weather" } } }]
          }
        }
      })
      const events = yield* run({ target: "tools", input }).toEnd
      const calls = events.flatMap((event) =>
        event.type === "delta" && event.kind === "tool_call" ? [event] : []
      )
      assert.strictEqual(calls[0]?.name, "get_weather")
      assert.match(calls[0]?.id ?? "", /^call_[0-9a-f]{8}$/)
      assert.isTrue(calls.slice(1).every((call) => call.id === undefined && call.name === undefined))
      assert.deepStrictEqual(JSON.parse(calls.map((call) => call.arguments).join("")), { query: "weather?" })
      assert.deepInclude(ended(events), { type: "completed", finishReason: "tool_calls" })
    })
  )

  it.effect("embed gives equal texts equal vectors of length 1", () =>
    Effect.gen(function* () {
      const { run } = yield* start()
      const input = create(RunInputSchema, {
        kind: {
          case: "embed",
          value: {
            dimensions: 8,
            items: ["a", "b", "a"].map((text) => ({ content: { case: "text" as const, value: text } }))
          }
        }
      })
      const events = yield* run({ target: "embed", input }).toEnd
      const vectors = events.flatMap((event) =>
        event.type === "delta" && event.kind === "embedding" ? [event] : []
      )
      assert.deepStrictEqual(
        vectors.map(({ index }) => index),
        [0, 1, 2]
      )
      assert.deepStrictEqual(vectors[0]?.values, vectorOf("a", 8))
      assert.deepStrictEqual(vectors[0]?.values, vectors[2]?.values)
      assert.notDeepEqual(vectors[0]?.values, vectors[1]?.values)
      assert.closeTo(Math.hypot(...vectors[0]!.values), 1, 1e-6)
      const [refused] = yield* run({ target: "embed", input: "a prompt" }).toEnd
      assert.deepInclude(refused, { type: "failed", code: "invalid_input", retryable: false })
    })
  )
})
