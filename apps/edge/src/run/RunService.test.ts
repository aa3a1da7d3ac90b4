import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import {
  cancelled,
  completed,
  type FakeLink,
  failure,
  join,
  record,
  started,
  text
} from "../../test/fakeNodes.ts"
import { fixture, limits, read, submit, turn, types } from "../../test/runFixture.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { RunService } from "./RunService.ts"

const terminals = ["completed", "failed", "cancelled"]

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

describe("failover", () => {
  const two = [record("a"), record("b")]
  const other = (links: ReadonlyArray<FakeLink>, link: FakeLink) => links.find((l) => l !== link)!

  it.effect("ND3 a run without a delta goes to the next node, and nothing of the first attempt is seen", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const links = [join(registry, "a"), join(registry, "b")]
      const { run, reader } = yield* submit()
      const first = links.find((link) => link.sent.length === 1)!
      const second = other(links, first)
      first.say(first.last, started)
      runs.linkLost(first, "connection reset", true)
      registry.detach(first, first === links[0] ? "a" : "b", "connection reset", true)
      yield* turn
      assert.strictEqual(second.last.dispatch.attempt, 2)
      second.say(second.last, started, text("answer"), completed)
      const events = read(reader)
      assert.deepStrictEqual(types(events), ["dispatched", "dispatched", "started", "delta", "completed"])
      const snapshot = yield* runs.get(run.id)
      assert.deepStrictEqual(
        snapshot.attempts.map((attempt) => attempt.outcome),
        ["node_lost", "completed"]
      )
    }).pipe(Effect.provide(fixture(two)))
  )

  it.effect(
    "ND7 a retryable failure before a delta is tried elsewhere, after a delta it is adapter_error",
    () =>
      Effect.gen(function* () {
        const registry = yield* NodeRegistry
        const links = [join(registry, "a"), join(registry, "b")]
        const early = yield* submit()
        const first = links.find((link) => link.sent.length === 1)!
        const second = other(links, first)
        first.say(first.last, started, failure(true))
        yield* turn
        assert.strictEqual(second.last.dispatch.runId, early.run.id)
        second.say(second.last, started, text("x"), failure(true))
        yield* turn
        const events = read(early.reader)
        assert.deepInclude(events[events.length - 1], { type: "failed", code: "adapter_error" })
        assert.strictEqual(first.sent.length, 1)
      }).pipe(Effect.provide(fixture(two)))
  )

  it.effect("an empty piece of text is no delta: the run may still go elsewhere", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const links = [join(registry, "a"), join(registry, "b")]
      yield* submit()
      const first = links.find((link) => link.sent.length === 1)!
      first.say(first.last, started, text(""), failure(true))
      yield* turn
      assert.strictEqual(other(links, first).sent.length, 1)
    }).pipe(Effect.provide(fixture(two)))
  )

  it.effect("ends after three attempts", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const links = ["a", "b", "c", "d"].map((id) => join(registry, id))
      const { run, reader } = yield* submit()
      for (let attempt = 1; attempt <= 3; attempt++) {
        const link = links.find((l) => l.sent.length === 1 && l.last.dispatch.attempt === attempt)!
        link.say(link.last, failure(true, `no ${attempt}`))
        yield* turn
      }
      assert.strictEqual(links.filter((link) => link.sent.length > 0).length, 3)
      const events = read(reader)
      const last = events[events.length - 1]
      assert.match(last?.type === "failed" ? last.message : "", /: no 3$/)
      assert.strictEqual((yield* RunService.use((runs) => runs.get(run.id))).attempt, 3)
    }).pipe(Effect.provide(fixture(["a", "b", "c", "d"].map((id) => record(id)))))
  )

  it.effect("a failure that no other node would mend is final", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const links = [join(registry, "a"), join(registry, "b")]
      const { reader } = yield* submit()
      const first = links.find((link) => link.sent.length === 1)!
      first.say(first.last, {
        type: "failed",
        code: "invalid_input",
        message: "no images here",
        retryable: false,
        backendStatus: 400
      })
      yield* turn
      assert.strictEqual(other(links, first).sent.length, 0)
      const events = read(reader)
      assert.deepInclude(events[events.length - 1], { code: "invalid_input", backendStatus: 400 })
    }).pipe(Effect.provide(fixture(two)))
  )

  it.effect("a lone node that is lost before a delta may resume, and a new process gets the run again", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run, reader } = yield* submit()
      runs.linkLost(link, "connection reset", true)
      registry.detach(link, "a", "connection reset", true)
      assert.strictEqual((yield* runs.get(run.id)).phase, "dispatched")
      const next = join(registry, "a")
      runs.resume(registry.entry("a")!, next, [])
      yield* turn
      assert.strictEqual(next.last.dispatch.attempt, 2)
      next.say(next.last, started, text("x"), completed)
      assert.strictEqual(types(read(reader)).filter((type) => terminals.includes(type)).length, 1)
    }).pipe(Effect.provide(fixture([record("a")])))
  )
})

describe("a lost link", () => {
  const lose = (link: FakeLink) =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      runs.linkLost(link, "connection reset", true)
      registry.detach(link, "a", "connection reset", true)
    })

  it.effect("ND4 in mid-stream resumes after the last acknowledged event; nothing is lost or doubled", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run, reader } = yield* submit()
      link.say(link.last, started)
      link.say(link.last, text("1"), text("2"))
      assert.deepStrictEqual(link.acks, [{ handle: 1, seq: 1 }])
      yield* lose(link)
      const next = join(registry, "a")
      const [answer] = runs.resume(registry.entry("a")!, next, [
        { runId: run.id, attempt: 1, firstUnackedSeq: 2, lastSeq: 6 }
      ])
      if (answer?.resume !== true) throw new Error("the run was not resumed")
      assert.strictEqual(answer.afterSeq, 1)
      const handle = next.adopt(answer.sink)
      answer.attach(handle)
      for (const [again, event] of [text("1"), text("2"), text("3"), text("4"), completed].entries()) {
        answer.sink.onEvent(answer.afterSeq + 1 + again, event, 40)
      }
      answer.sink.onReadEnd()
      const events = read(reader)
      assert.deepStrictEqual(types(events), [
        "dispatched",
        "started",
        "delta",
        "delta",
        "delta",
        "delta",
        "completed"
      ])
      assert.deepStrictEqual(
        events.flatMap((event) => (event.type === "delta" && "text" in event ? [event.text] : [])),
        ["1", "2", "3", "4"]
      )
      assert.deepStrictEqual(next.released, [handle])
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("ND5 whose process is gone ends the run node_lost, at once when it registers again", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { reader } = yield* submit()
      link.say(link.last, started, text("1"))
      yield* lose(link)
      assert.deepStrictEqual(types(read(reader)), ["dispatched", "started", "delta"])
      runs.resume(registry.entry("a")!, join(registry, "a"), [])
      const events = read(reader)
      assert.deepInclude(events[0], { type: "failed", code: "node_lost" })
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("ND5 that does not come back ends the run when the grace ends", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const { reader } = yield* submit()
      link.say(link.last, started, text("1"))
      read(reader)
      yield* lose(link)
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual(read(reader).length, 0)
      yield* TestClock.adjust("2 seconds")
      assert.deepInclude(read(reader)[0], { type: "failed", code: "node_lost" })
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("EV12 a claim that leaves a hole fails the run, and the node is told to stop", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run, reader } = yield* submit()
      link.say(link.last, started, text("1"))
      yield* lose(link)
      const answers = runs.resume(registry.entry("a")!, join(registry, "a"), [
        { runId: run.id, attempt: 1, firstUnackedSeq: 5, lastSeq: 9 },
        { runId: "nobody knows", attempt: 1, firstUnackedSeq: 1, lastSeq: 1 }
      ])
      assert.deepStrictEqual(
        answers.map((answer) => answer.resume),
        [false, false]
      )
      const events = read(reader)
      assert.deepInclude(events[events.length - 1], { type: "failed", code: "protocol_error" })
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("frees the slot of a run that was cancelled but never answered", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run } = yield* submit()
      yield* runs.cancel(run.id, "asked")
      yield* TestClock.adjust("6 seconds")
      assert.strictEqual(registry.entry("a")?.slotsInUse, 1)
      yield* lose(link)
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
    }).pipe(Effect.provide(fixture([record("a")])))
  )
})

describe("the event stream", () => {
  const cases: ReadonlyArray<[string, (link: FakeLink) => void, RegExp]> = [
    ["EV4 a gap", (link) => link.last.sink.onEvent(2, text("x"), 40), /event 1 is missing, 2 came/],
    ["EV6 a delta before started", (link) => link.say(link.last, text("x")), /a delta before started/],
    ["EV6 started twice", (link) => link.say(link.last, started, started), /a second started/],
    [
      "an overrun window",
      (link) => {
        link.last.sink.onEvent(1, started, 3000)
        link.last.sink.onEvent(2, text("x"), 3000)
      },
      /6000 unacknowledged bytes, the run window is 4096/
    ]
  ]
  for (const [name, act, message] of cases) {
    it.effect(`${name} fails the run with protocol_error and cancels it at the node`, () =>
      Effect.gen(function* () {
        const registry = yield* NodeRegistry
        const link = join(registry, "a")
        const { reader } = yield* submit()
        const unharmed = yield* submit()
        const sent = link.sent[0]!
        act({ ...link, last: sent, say: link.say.bind(link) } as FakeLink)
        const events = read(reader)
        const last = events[events.length - 1]
        assert.deepInclude(last, { type: "failed", code: "protocol_error" })
        assert.match(last?.type === "failed" ? last.message : "", message)
        assert.strictEqual(link.cancels[0]?.code, "protocol_error")
        link.say(link.sent[1]!, started, text("fine"), completed)
        assert.isTrue(types(read(unharmed.reader)).includes("completed"))
      }).pipe(Effect.provide(fixture([record("a")])))
    )
  }

  it.effect("EV3 EV5 an event that came already is dropped and acknowledged again; the first one wins", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const { reader } = yield* submit()
      link.say(link.last, started, text("first"))
      link.last.sink.onEvent(2, text("other"), 40)
      link.last.sink.onReadEnd()
      // Twice: for the first event, and again for the one that came again.
      assert.deepStrictEqual(
        link.acks.map((ack) => ack.seq),
        [2, 2]
      )
      link.say(link.last, completed)
      const texts = read(reader).flatMap((event) =>
        event.type === "delta" && "text" in event ? [event.text] : []
      )
      assert.deepStrictEqual(texts, ["first"])
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("EV7 nothing follows the end", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const { reader } = yield* submit()
      link.say(link.last, started, completed, text("more"), failure(true), completed)
      assert.deepStrictEqual(types(read(reader)), ["dispatched", "started", "completed"])
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("EV10 one event larger than the window passes as soon as nothing is unacknowledged", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const { reader } = yield* submit()
      const { sink } = link.last
      // A node may send the large one only when its small ones are acknowledged: the first is at once, others soon.
      sink.onEvent(1, started, 40)
      sink.onReadEnd()
      assert.deepStrictEqual(link.acks, [{ handle: 1, seq: 1 }])
      sink.onEvent(2, text("small"), 40)
      sink.onReadEnd()
      assert.strictEqual(link.acks.length, 1)
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(link.acks[1], { handle: 1, seq: 2 })
      sink.onEvent(3, text("big"), 500_000)
      sink.onReadEnd()
      assert.strictEqual(link.acks.length, 2)
      assert.deepStrictEqual(types(read(reader)), ["dispatched", "started", "delta", "delta"])
      // Reading made room, so that the rest is acknowledged too.
      assert.deepStrictEqual(link.acks[2], { handle: 1, seq: 3 })
      sink.onEvent(4, completed, 40)
      sink.onReadEnd()
      assert.deepStrictEqual(link.acks[3], { handle: 1, seq: 4 })
    }).pipe(Effect.provide(fixture([record("a")])))
  )
})

describe("slow readers", () => {
  const flood = (link: FakeLink, sent: FakeLink["last"], count: number) => {
    for (let i = 0; i < count; i++) link.say(sent, text("0123456789"))
  }

  it.effect(
    "SL1 an owner that is slow holds its own run back: nothing more is acknowledged until it reads",
    () =>
      Effect.gen(function* () {
        const link = join(yield* NodeRegistry, "a")
        const { reader } = yield* submit()
        link.say(link.last, started)
        flood(link, link.last, 140)
        const acked = link.acks[link.acks.length - 1]!.seq
        assert.isBelow(acked, 141)
        flood(link, link.last, 20)
        assert.strictEqual(link.acks[link.acks.length - 1]!.seq, acked)
        read(reader)
        assert.strictEqual(link.acks[link.acks.length - 1]!.seq, 161)
      }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect(
    "SL2 an owner that takes nothing for 30 s is ended with slow_consumer and its run cancelled",
    () =>
      Effect.gen(function* () {
        const registry = yield* NodeRegistry
        const link = join(registry, "a")
        const { run, reader } = yield* submit()
        link.say(link.last, started, text("x"))
        yield* TestClock.adjust("31 seconds")
        assert.strictEqual(reader.failure()?.code, "slow_consumer")
        assert.match(reader.failure()?.message ?? "", /took nothing for 30\.\d s \(limit 30 s\)/)
        assert.strictEqual(link.cancels[0]?.code, "slow_consumer")
        link.say(link.last, cancelled)
        assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
        assert.strictEqual((yield* RunService.use((runs) => runs.get(run.id))).failure?.code, "slow_consumer")
      }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("SL4 of two readers the stopped one ends alone and the other gets everything", () =>
    Effect.gen(function* () {
      const runs = yield* RunService
      const link = join(yield* NodeRegistry, "a")
      const { run, reader } = yield* submit()
      const stopped = yield* runs.read(run.id)
      link.say(link.last, started)
      let seen = 0
      for (let i = 0; i < 100; i++) {
        flood(link, link.last, 10)
        seen += read(reader).length
      }
      link.say(link.last, completed)
      assert.strictEqual(seen + read(reader).length, 1 + 1 + 1000 + 1)
      assert.strictEqual(stopped.failure()?.code, "slow_consumer")
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("SL4 a stopped owner ends alone while somebody else reads", () =>
    Effect.gen(function* () {
      const runs = yield* RunService
      const link = join(yield* NodeRegistry, "a")
      const { run, reader } = yield* submit()
      const observer = yield* runs.read(run.id)
      link.say(link.last, started, text("x"))
      for (let i = 0; i < 4; i++) {
        yield* TestClock.adjust("10 seconds")
        observer.take()
      }
      assert.strictEqual(reader.failure()?.code, "slow_consumer")
      assert.strictEqual(link.cancels.length, 0)
      link.say(link.last, completed)
      assert.deepStrictEqual(types(read(observer)), ["completed"])
    }).pipe(Effect.provide(fixture([record("a")])))
  )
})

describe("the circuit", () => {
  it.effect("takes a node out that fails fast, probes it with one run and lets it back in", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const bad = join(registry, "bad")
      const good = join(registry, "good")
      let onGood = 0
      for (let i = 0; i < 100; i++) {
        yield* submit()
        for (const sent of bad.sent.splice(0)) bad.say(sent, failure(true, "boom"))
        yield* turn
        for (const sent of good.sent.splice(0)) {
          onGood += 1
          good.say(sent, started, text("ok"), completed)
        }
      }
      assert.strictEqual(onGood, 100)
      const why = runs.explain({ adapter: "mock", target: "echo" }).nodes.find((node) => node.alias === "bad")
      assert.strictEqual(why?.reason, "circuit_open")
      assert.match(why?.message ?? "", /tried again in 10 s: boom/)
      yield* TestClock.adjust("10 seconds")
      yield* submit()
      assert.strictEqual(bad.sent.length, 1)
      yield* submit()
      assert.strictEqual(bad.sent.length, 1)
      bad.say(bad.last, started, text("back"), completed)
      yield* submit()
      assert.strictEqual(bad.sent.length, 2)
    }).pipe(Effect.provide(fixture([record("bad"), record("good")])))
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
