import { create } from "@bufbuild/protobuf"
import { assert, describe, it } from "@effect/vitest"
import { NodeConfigPayloadSchema } from "@iop/platform-common/gen/iop/v1/node_config_pb"
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type AdapterContext, AdapterFailure, defineAdapter } from "./Adapter.ts"
import { AdapterSet } from "./AdapterSet.ts"

interface Entry {
  readonly name: string
  readonly mark?: string
}

const payload = (...entries: ReadonlyArray<Entry>) =>
  create(NodeConfigPayloadSchema, {
    revision: "r",
    runtime: { probeIntervalMs: 5_000 },
    adapters: entries.map(({ mark = "", name }) => ({
      name,
      slots: 1,
      targets: ["t"],
      settings: { case: "custom" as const, value: { kind: "k", settings: { mark } } }
    }))
  })

const setUp = (
  start: (context: AdapterContext, mark: unknown) => Effect.Effect<void, AdapterFailure> = () => Effect.void
) => {
  const events: Array<string> = []
  const contexts = new Map<string, AdapterContext>()
  const kind = defineAdapter({
    kind: "k",
    start: (settings, context) =>
      Effect.gen(function* () {
        const name = `${context.name}${String(settings.mark)}`
        events.push(`start ${name}`)
        contexts.set(context.name, context)
        yield* Effect.addFinalizer(() => Effect.sync(() => events.push(`close ${name}`)))
        yield* start(context, settings.mark)
        return { run: () => Stream.empty }
      })
  })
  let changes = 0
  const set = new AdapterSet([kind], {
    changed: () => changes++,
    stopped: (adapter) => events.push(`stopped ${adapter.config.name}`)
  })
  const states = () =>
    set.all.map(({ config, reason, state }) => [config.name, state, reason].join(" ").trim())
  return { set, events, contexts, states, changes: () => changes }
}

describe("a configuration", () => {
  it.effect(
    "starts, keeps, restarts and stops adapters by difference, a successor after its predecessor",
    () =>
      Effect.gen(function* () {
        const { events, set, states } = setUp()
        yield* set.apply(payload({ name: "a" }, { name: "b" }, { name: "c" }))
        assert.deepStrictEqual(events.splice(0), ["start a", "start b", "start c"])
        assert.deepStrictEqual(states(), ["a ready", "b ready", "c ready"])
        const kept = set.find("a")
        yield* set.apply(payload({ name: "a" }, { name: "b", mark: "2" }))
        assert.deepStrictEqual(events.splice(0), ["stopped b", "close b", "start b2", "stopped c", "close c"])
        assert.strictEqual(set.find("a"), kept)
        assert.isUndefined(set.find("c"))
        yield* set.close
        assert.deepStrictEqual(events, ["stopped a", "close a", "stopped b", "close b2"])
      })
  )
})

describe("a start", () => {
  it.effect("that fails is reported and tried again, and leaves nothing open", () =>
    Effect.gen(function* () {
      let attempts = 0
      const { events, set, states } = setUp(() =>
        ++attempts < 3
          ? new AdapterFailure({ code: "adapter_error", message: "no backend at :1", retryable: true })
          : Effect.void
      )
      yield* set.apply(payload({ name: "a" }))
      assert.deepStrictEqual(states(), ["a unavailable no backend at :1"])
      assert.isUndefined(set.find("a")?.instance)
      assert.deepStrictEqual(events, ["start a", "close a"])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(states(), ["a unavailable no backend at :1"])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(states(), ["a ready"])
      assert.deepStrictEqual(events, ["start a", "close a", "start a", "close a", "start a"])
    })
  )

  it.effect("that is slow does not hold up the others", () =>
    Effect.gen(function* () {
      const { set, states } = setUp(({ name }) => (name === "slow" ? Effect.sleep("3 seconds") : Effect.void))
      yield* set.apply(payload({ name: "slow" }, { name: "fast" }))
      assert.deepStrictEqual(states(), ["slow starting the adapter is starting", "fast ready"])
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(states(), ["slow ready", "fast ready"])
    })
  )

  it.effect("that reports readiness before it is over is ready when it is over, with what it reported", () =>
    Effect.gen(function* () {
      const { set, states } = setUp((context) =>
        Effect.andThen(
          context.report({ state: "ready", targets: [{ name: "m" }] }),
          Effect.sleep("1 seconds")
        )
      )
      yield* set.apply(payload({ name: "a" }))
      assert.deepStrictEqual(states(), ["a starting the adapter is starting"])
      yield* TestClock.adjust("1 seconds")
      assert.deepStrictEqual(states(), ["a ready"])
      assert.deepStrictEqual(set.find("a")?.targets, [{ name: "m" }])
    })
  )

  it.effect("that crashes is reported as that", () =>
    Effect.gen(function* () {
      const { set, states } = setUp(() => Effect.die(new Error("boom")))
      yield* set.apply(payload({ name: "a" }))
      assert.deepStrictEqual(states(), ["a unavailable the adapter crashed at its start: boom"])
    })
  )
})

describe("a report", () => {
  it.effect(
    "changes what is known; one that says nothing new is dropped, as is one of a stopped adapter",
    () =>
      Effect.gen(function* () {
        const { changes, contexts, set, states } = setUp()
        yield* set.apply(payload({ name: "a" }))
        const context = contexts.get("a")!
        const before = changes()
        const report = context.report({ state: "degraded", reason: "slow", targets: [{ name: "m" }] })
        yield* report
        yield* report
        assert.strictEqual(changes(), before + 1)
        assert.deepStrictEqual(states(), ["a degraded slow"])
        assert.deepStrictEqual(set.find("a")?.targets, [{ name: "m" }])
        yield* set.apply(payload({ name: "a", mark: "2" }))
        yield* report
        assert.deepStrictEqual(states(), ["a ready"])
      })
  )
})
