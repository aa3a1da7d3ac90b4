import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { cancelled, completed, join, record, started, text } from "../../test/fakeNodes.ts"
import { fixture, limits, read, submit, types } from "../../test/runFixture.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { RunService } from "./RunService.ts"

describe("clocks", () => {
  const patient = { relay: { ...limits.relay, consumerMs: 3_600_000 } }
  const lastOf = (events: ReadonlyArray<{ readonly type: string }>) =>
    events[events.length - 1] as
      | { readonly type: string; readonly code?: string; readonly message?: string }
      | undefined

  it.effect("CN7 first_event_timeout cancels at the node and keeps the slot until it answers", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      const { run, reader } = yield* submit()
      yield* TestClock.adjust("119 seconds")
      assert.deepStrictEqual(types(read(reader)), ["dispatched"])
      yield* TestClock.adjust("2 seconds")
      const last = lastOf(read(reader))
      assert.strictEqual(last?.code, "first_event_timeout")
      assert.strictEqual(last?.message, "the node sent no event for 120.0 s (limit 120 s)")
      assert.strictEqual(link.cancels[0]?.code, "deadline")
      assert.strictEqual(registry.entry("a")?.slotsInUse, 1)
      assert.isTrue((yield* RunService.use((runs) => runs.get(run.id))).slotHeld)
      link.say(link.last, cancelled)
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
      assert.isFalse((yield* RunService.use((runs) => runs.get(run.id))).slotHeld)
      assert.strictEqual(read(reader).length, 0)
    }).pipe(Effect.provide(fixture([record("a")], patient)))
  )

  it.effect("SL3 deltas every 119 s live on, a silence of 121 s is idle_timeout", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      const { reader } = yield* submit()
      link.say(link.last, started)
      for (let i = 0; i < 3; i++) {
        yield* TestClock.adjust("119 seconds")
        link.say(link.last, text("x"))
      }
      assert.strictEqual(types(read(reader)).filter((type) => type === "delta").length, 3)
      yield* TestClock.adjust("121 seconds")
      const last = lastOf(read(reader))
      assert.strictEqual(last?.code, "idle_timeout")
      assert.match(
        last?.message ?? "",
        /^the node sent nothing for 120\.0 s between two events \(limit 120 s\)$/
      )
    }).pipe(Effect.provide(fixture([record("a")], patient)))
  )

  it.effect("CN7 run_timeout counts from the submission, in the queue as well", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      const first = yield* submit({ timeoutMs: 10_000 })
      const second = yield* submit({ timeoutMs: 5000 })
      assert.strictEqual(link.last.dispatch.deadlineMs, 10_000)
      link.say(link.last, started, text("x"))
      yield* TestClock.adjust("11 seconds")
      assert.strictEqual(lastOf(read(second.reader))?.code, "run_timeout")
      const last = lastOf(read(first.reader))
      assert.strictEqual(last?.code, "run_timeout")
      assert.strictEqual(last?.message, "the run took 10.0 s (limit 10 s)")
    }).pipe(Effect.provide(fixture([record("a", { slots: 1 })], patient)))
  )

  it.effect("CN8 the grace does not extend the total time", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { reader } = yield* submit({ timeoutMs: 10_000 })
      link.say(link.last, started, text("x"))
      runs.linkLost(link, "reset", true)
      registry.detach(link, "a", "reset", true)
      yield* TestClock.adjust("11 seconds")
      assert.strictEqual(lastOf(read(reader))?.code, "run_timeout")
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
    }).pipe(Effect.provide(fixture([record("a")], patient)))
  )
})

describe("cancel", () => {
  it.effect("CN2 tells the node and is final when it answers", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run, reader } = yield* submit()
      const observer = yield* runs.read(run.id)
      link.say(link.last, started, text("x"))
      const during = yield* runs.cancel(run.id, "asked")
      assert.strictEqual(during.phase, "cancelling")
      assert.deepStrictEqual(link.cancels, [{ handle: 1, code: "caller", reason: "asked" }])
      link.say(link.last, text("late"), cancelled)
      assert.deepStrictEqual(types(read(reader)), ["dispatched", "started", "delta", "cancelled"])
      assert.deepStrictEqual(types(read(observer)), ["dispatched", "started", "delta", "cancelled"])
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("CN3 is final after the bound when the node does not answer, and its slot stays taken", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run, reader } = yield* submit()
      link.say(link.last, started, text("x"))
      yield* runs.cancel(run.id, "asked")
      yield* TestClock.adjust("4 seconds")
      assert.strictEqual((yield* runs.get(run.id)).phase, "cancelling")
      yield* TestClock.adjust("2 seconds")
      const after = yield* runs.get(run.id)
      assert.strictEqual(after.phase, "cancelled")
      assert.isTrue(after.slotHeld)
      assert.strictEqual(registry.entry("a")?.slotsInUse, 1)
      link.say(link.last, text("late"), text("later"), completed)
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
      assert.deepStrictEqual(types(read(reader)), ["dispatched", "started", "delta", "cancelled"])
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("CN6 is idempotent and tells the node once", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run } = yield* submit()
      yield* runs.cancel(run.id, "once")
      yield* runs.cancel(run.id, "twice")
      link.say(link.last, cancelled)
      const late = yield* runs.cancel(run.id, "late")
      assert.strictEqual(late.phase, "cancelled")
      assert.strictEqual(late.cancelReason, "once")
      assert.strictEqual(link.cancels.length, 1)
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("is final at once when the request had not left", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      link.holding = true
      const { run, reader } = yield* submit()
      assert.strictEqual((yield* runs.cancel(run.id, "asked")).phase, "cancelled")
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
      assert.deepStrictEqual(types(read(reader)), ["dispatched", "cancelled"])
    }).pipe(Effect.provide(fixture([record("a")])))
  )
})
