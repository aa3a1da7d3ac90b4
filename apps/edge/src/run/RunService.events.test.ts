import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
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
import { fixture, read, submit, types } from "../../test/runFixture.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { RunService } from "./RunService.ts"

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

  it.effect("EV4 a node that left a gap gives its slot back with its answer, whatever its number", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const link = join(registry, "a")
      const { run } = yield* submit()
      const { sink } = link.last
      sink.onEvent(1, started, 40)
      sink.onEvent(3, text("x"), 40)
      assert.strictEqual(link.cancels[0]?.code, "protocol_error")
      assert.strictEqual(registry.entry("a")?.slotsInUse, 1)
      sink.onEvent(4, text("late"), 999_999)
      sink.onEvent(7, cancelled, 40)
      assert.strictEqual(registry.entry("a")?.slotsInUse, 0)
      assert.isFalse((yield* RunService.use((runs) => runs.get(run.id))).slotHeld)
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("EV3 a node that repeats itself without end loses its link", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      yield* submit()
      link.say(link.last, started)
      for (let i = 0; i < 1000; i++) link.last.sink.onEvent(1, started, 40)
      assert.isUndefined(link.ended)
      link.last.sink.onEvent(1, started, 40)
      assert.strictEqual(link.ended, "protocol_error")
    }).pipe(Effect.provide(fixture([record("a")])))
  )

  it.effect("waits with one alarm for all small acknowledgements, however many events come", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const { reader } = yield* submit()
      yield* submit()
      for (const sent of link.sent) link.say(sent, started)
      for (let i = 0; i < 20; i++) for (const sent of link.sent) link.say(sent, text("x"))
      read(reader)
      const before = link.acks.length
      yield* TestClock.adjust("100 millis")
      // One for each run, and nothing is left to be acknowledged.
      assert.strictEqual(link.acks.length, before + 2)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(link.acks.length, before + 2)
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
