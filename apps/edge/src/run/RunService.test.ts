import { assert, it } from "@effect/vitest"
import { chatInput } from "@iop/platform-common/protocol/runInputText"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { cancelled, completed, join, record, started, text } from "../../test/fakeNodes.ts"
import { fixture, limits, read, submit, turn, types } from "../../test/runFixture.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { RunService } from "./RunService.ts"

/** The code that a refusal or a failed event has. */
const refused = <A, E extends { readonly failure: { readonly code: string; readonly message: string } }, R>(
  effect: Effect.Effect<A, E, R>
) => Effect.map(Effect.flip(effect), (error) => error.failure)

describe("a run", () => {
  it.effect("goes to a node and its events come back in order", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      const { run, reader } = yield* submit({ session: "s" })
      assert.strictEqual(run.phase, "dispatched")
      assert.strictEqual(run.node, "a")
      assert.strictEqual(link.last.dispatch.attempt, 1)
      link.say(
        link.last,
        started,
        text("he"),
        text("llo"),
        { type: "usage", usage: { outputTokens: 2 } },
        completed
      )
      const events = read(reader)
      assert.deepStrictEqual(types(events), ["dispatched", "started", "delta", "delta", "usage", "completed"])
      assert.isTrue(reader.done())
      const after = yield* RunService.use((runs) => runs.get(run.id))
      assert.strictEqual(after.phase, "completed")
      assert.deepStrictEqual(after.usage, { outputTokens: 2 })
      assert.strictEqual(registry.entry("a")?.slots("mock").inUse, 0)
      assert.deepStrictEqual(link.released, [1])
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("is a stream of the same events", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { reader } = yield* submit()
      const collected = yield* runs
        .events(reader)
        .pipe(Stream.runCollect, Effect.forkChild({ startImmediately: true }))
      link.say(link.last, started, text("x"))
      yield* turn
      link.say(link.last, completed)
      assert.deepStrictEqual(
        (yield* Fiber.join(collected)).map((relayed) => relayed.seq),
        [1, 2, 3, 4]
      )
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("is cancelled when the reader of its owner leaves", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      const { run, reader } = yield* submit()
      reader.close()
      assert.strictEqual(link.cancels.length, 1)
      assert.strictEqual((yield* RunService.use((runs) => runs.get(run.id))).phase, "cancelling")
      link.say(link.last, cancelled)
      assert.strictEqual((yield* RunService.use((runs) => runs.get(run.id))).phase, "cancelled")
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("CN9 goes on without its caller when it is detached, and a later reader gets the rest", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run, reader } = yield* submit({ detached: true })
      link.say(link.last, started, text("one"))
      assert.strictEqual(read(reader).length, 3)
      reader.close()
      link.say(link.last, text("two"), completed)
      assert.strictEqual(link.cancels.length, 0)
      const later = yield* runs.read(run.id, 3)
      assert.deepStrictEqual(types(read(later)), ["delta", "completed"])
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("CN9 says too late when the events that are asked for are gone", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run, reader } = yield* submit({ detached: true })
      reader.close()
      link.say(link.last, started)
      for (let i = 0; i < 1000; i++) link.say(link.last, text("x"))
      const error = yield* Effect.flip(runs.read(run.id, 0))
      assert.strictEqual(error._tag, "TooLate")
      assert.match(error.message, /too late: run .* keeps events from \d+ on, 1 was asked for/)
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("EV8 may complete without a delta or usage", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      const { run, reader } = yield* submit()
      link.say(link.last, started, completed)
      assert.deepStrictEqual(types(read(reader)), ["dispatched", "started", "completed"])
      assert.isUndefined((yield* RunService.use((runs) => runs.get(run.id))).usage)
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("EV9 keeps no empty pieces of text, and acknowledges them", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      const { reader } = yield* submit()
      link.say(link.last, started)
      for (let i = 0; i < 1000; i++) link.say(link.last, text(""))
      link.say(link.last, text("x"), completed)
      assert.deepStrictEqual(types(read(reader)), ["dispatched", "started", "delta", "completed"])
      assert.isAbove(link.acks.length, 10)
    }).pipe(Effect.provide(fixture([record("a")])))
  )
})

describe("refusal", () => {
  it.effect("names the targets that there are", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      join(registry, "a", ["echo", "lorem"])
      const failure = yield* refused(submit({ target: "nothing" }))
      assert.strictEqual(failure.code, "target_not_found")
      assert.strictEqual(failure.message, "no node could serve mock/nothing: targets of mock: echo, lorem")
      const other = yield* refused(submit({ adapter: "gpt" }))
      assert.strictEqual(
        other.message,
        "no node could serve gpt/echo: no node has an adapter of that name; there are: mock"
      )
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("OB7 says which labels there are when it is the labels that fit nowhere", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      join(registry, "a")
      join(registry, "b")
      const failure = yield* refused(submit({ labels: { room: "cellar" } }))
      assert.strictEqual(failure.code, "target_not_found")
      assert.strictEqual(
        failure.message,
        "no node that could serve mock/echo has the labels room=cellar; there are: a (room=attic), b (no labels)"
      )
    }).pipe(Effect.provide(fixture([record("a", { labels: { room: "attic" } }), record("b")])))
  )

  it.effect("OB7 no_node_available says why for each node", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "b")
      registry.setCordoned(registry.entry("b")!, true)
      join(registry, "c")
      const c = registry.entry("c")!
      registry.setStatus(c, c.link!, {
        revision: c.revision,
        draining: false,
        adapters: new Map([
          ["mock", { name: "mock", state: "unavailable", reason: "connection refused", targets: [] }]
        ])
      })
      const failure = yield* refused(submit())
      assert.strictEqual(failure.code, "no_node_available")
      assert.include(failure.message, "a has not connected since the edge started")
      assert.include(failure.message, "b is cordoned")
      assert.include(failure.message, "c adapter mock is unavailable: connection refused")
      assert.strictEqual(link.sent.length, 0)
    }).pipe(Effect.provide(fixture([record("a"), record("b"), record("c")])))
  )

  it.effect("RS6 as many runs as the memory allows, and then queue_full", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const small = yield* Effect.result(Effect.forEach([1, 2, 3], () => submit()))
      assert.strictEqual(small._tag === "Failure" ? small.failure.failure.code : "", "queue_full")
      assert.strictEqual(
        small._tag === "Failure" ? small.failure.failure.message : "",
        "2 runs go on, as many as the memory of this edge allows"
      )
      link.say(link.sent[0]!, started, completed)
      yield* submit()
    }).pipe(Effect.provide(fixture([record("a")], { heapBytes: 120 * 1024 })))
  )

  it.effect("RS6 as much input as the memory allows, and a single large one all the same", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const large = { input: chatInput("x".repeat(600_000)) }
      yield* submit(large)
      const failure = yield* refused(submit(large))
      assert.strictEqual(failure.code, "queue_full")
      assert.match(failure.message, /the inputs of the runs that go on take 1 MiB, as much as the memory/)
      link.say(link.last, started, completed)
      yield* submit(large)
    }).pipe(Effect.provide(fixture([record("a")], { heapBytes: 4 << 20 })))
  )

  it.effect("an input that no node can be sent fails the run", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      link.unsendable = "the input is too large"
      const { reader } = yield* submit()
      const events = read(reader)
      const last = events[events.length - 1]
      assert.strictEqual(last?.type === "failed" ? last.code : "", "invalid_input")
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
    }).pipe(Effect.provide(fixture([record("a")])))
  )
})

describe("the queue", () => {
  it.effect("50 runs at 4 slots and a queue of 30: 34 are served in order, 16 are refused", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      const accepted: Array<string> = []
      let full = 0
      for (let i = 0; i < 50; i++) {
        const result = yield* Effect.result(submit())
        if (result._tag === "Success") accepted.push(result.success.run.id)
        else {
          assert.strictEqual(result.failure.failure.code, "queue_full")
          full += 1
        }
      }
      assert.strictEqual(accepted.length, 34)
      assert.strictEqual(full, 16)
      for (let served = 0; served < 34; served++) {
        const sent = link.sent[served]!
        link.say(sent, started, completed)
        yield* turn
      }
      assert.deepStrictEqual(
        link.sent.map((sent) => sent.dispatch.runId),
        accepted
      )
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
    }).pipe(Effect.provide(fixture([record("a")], { queueLimit: 30 })))
  )

  it.effect("CN1 a run that is cancelled while it waits never leaves, and the others move up", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      yield* submit()
      const second = yield* submit()
      const third = yield* submit()
      assert.strictEqual(second.run.phase, "queued")
      assert.deepStrictEqual(read(third.reader), [{ type: "queued", ahead: 1 }])
      yield* runs.cancel(second.run.id, "not wanted")
      assert.deepStrictEqual(types(read(second.reader)), ["queued", "cancelled"])
      link.say(link.last, started, completed)
      yield* turn
      assert.strictEqual(link.last.dispatch.runId, third.run.id)
      assert.strictEqual(link.sent.length, 2)
      assert.strictEqual(link.cancels.length, 0)
    }).pipe(Effect.provide(fixture([record("a", { slots: 1 })])))
  )

  it.effect("a run for one label does not hold up a run for another", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const a = join(registry, "a")
      const b = join(registry, "b")
      yield* submit({ labels: { gpu: "a" } })
      yield* submit({ labels: { gpu: "b" } })
      yield* submit({ labels: { gpu: "a" } })
      const waiting = yield* submit({ labels: { gpu: "b" } })
      b.say(b.last, started, completed)
      yield* turn
      assert.strictEqual(b.last.dispatch.runId, waiting.run.id)
      assert.strictEqual(a.sent.length, 1)
    }).pipe(
      Effect.provide(
        fixture([
          record("a", { slots: 1, labels: { gpu: "a" } }),
          record("b", { slots: 1, labels: { gpu: "b" } })
        ])
      )
    )
  )

  it.effect("CN7 queue_timeout names the clock, the measured time and the nodes", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      join(registry, "a")
      yield* submit()
      const { reader } = yield* submit()
      yield* TestClock.adjust("61 seconds")
      const events = read(reader)
      const last = events[events.length - 1]
      assert.deepInclude(last, { type: "failed", code: "queue_timeout" })
      assert.match(
        last?.type === "failed" ? last.message : "",
        /^no slot was free for 60\.0 s \(limit 60 s\); a: all slots are taken \(1 of 1 slots in use\)$/
      )
    }).pipe(
      Effect.provide(
        fixture([record("a", { slots: 1 })], { relay: { ...limits.relay, consumerMs: 600_000 } })
      )
    )
  )
})

describe("stopping", () => {
  it.effect("ED2 drains: queued runs fail, running ones finish, new ones are refused", () =>
    Effect.gen(function* () {
      const runs = yield* RunService
      const link = join(yield* NodeRegistry, "a")
      const running = yield* submit()
      const waiting = yield* submit()
      const drained = yield* Effect.forkChild(runs.drain, { startImmediately: true })
      assert.deepInclude(read(waiting.reader)[1], { type: "failed", code: "draining" })
      assert.strictEqual((yield* refused(submit())).code, "draining")
      link.say(link.last, started, text("x"), completed)
      yield* Fiber.join(drained)
      assert.isTrue(types(read(running.reader)).includes("completed"))
    }).pipe(Effect.provide(fixture([record("a", { slots: 1 })])))
  )

  it.effect("ED2 ends what is left with draining", () =>
    Effect.gen(function* () {
      const runs = yield* RunService
      const link = join(yield* NodeRegistry, "a")
      const { reader } = yield* submit()
      yield* runs.stop
      const events = read(reader)
      assert.deepInclude(events[events.length - 1], { type: "failed", code: "draining" })
      assert.strictEqual(link.cancels[0]?.code, "draining")
      assert.deepStrictEqual(runs.counts(), { queued: 0, inFlight: 0 })
    }).pipe(Effect.provide(fixture([record("a")])))
  )
})
