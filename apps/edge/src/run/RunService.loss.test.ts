import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { completed, type FakeLink, failure, join, record, started, text } from "../../test/fakeNodes.ts"
import { fixture, limits, read, submit, turn, types } from "../../test/runFixture.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { RunService } from "./RunService.ts"

const terminals = ["completed", "failed", "cancelled"]

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

  it.effect("a node that is lost with all others may resume as well as they may come back", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const a = join(registry, "a")
      const { run } = yield* submit()
      a.say(a.last, started)
      const b = join(registry, "b")
      for (const [link, id] of [
        [b, "b"],
        [a, "a"]
      ] as const) {
        runs.linkLost(link, "connection reset", true)
        registry.detach(link, id, "connection reset", true)
      }
      yield* turn
      assert.strictEqual((yield* runs.get(run.id)).phase, "started")
      const next = join(registry, "a")
      const [answer] = runs.resume(registry.entry("a")!, next, [
        { runId: run.id, attempt: 1, firstUnackedSeq: 2, lastSeq: 2 }
      ])
      assert.isTrue(answer?.resume)
    }).pipe(Effect.provide(fixture(two)))
  )

  it.effect("OB7 a run that waits for the other node in vain names what became of it", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const a = join(registry, "a")
      const { reader } = yield* submit()
      const b = join(registry, "b")
      runs.linkLost(b, "connection reset", true)
      registry.detach(b, "b", "connection reset", true)
      a.say(a.last, failure(true))
      yield* TestClock.adjust("61 seconds")
      const events = read(reader)
      const last = events[events.length - 1]
      assert.deepInclude(last, { type: "failed", code: "no_node_available" })
      assert.match(
        last?.type === "failed" ? last.message : "",
        /^no node could take it for 60\.0 s \(limit 60 s\); a: this run already failed here; b: offline for \d+ s: connection reset$/
      )
    }).pipe(Effect.provide(fixture(two, { relay: { ...limits.relay, consumerMs: 600_000 } })))
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
        "interrupted",
        "resumed",
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

  it.effect("acknowledges on the new link only what has come again there", () =>
    Effect.gen(function* () {
      const registry = yield* NodeRegistry
      const runs = yield* RunService
      const link = join(registry, "a")
      const { run, reader } = yield* submit()
      link.say(link.last, started)
      for (let i = 0; i < 20; i++) link.say(link.last, text("0123456789"))
      yield* lose(link)
      const next = join(registry, "a")
      const [answer] = runs.resume(registry.entry("a")!, next, [
        { runId: run.id, attempt: 1, firstUnackedSeq: 2, lastSeq: 21 }
      ])
      if (answer?.resume !== true) throw new Error("the run was not resumed")
      answer.attach(next.adopt(answer.sink))
      read(reader)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(next.acks, [])
      for (let seq = 2; seq <= 11; seq++) answer.sink.onEvent(seq, text("0123456789"), 40)
      answer.sink.onReadEnd()
      yield* TestClock.adjust("1 second")
      assert.strictEqual(next.acks[next.acks.length - 1]?.seq, 11)
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
      assert.deepStrictEqual(types(read(reader)), ["dispatched", "started", "delta", "interrupted"])
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
      assert.deepStrictEqual(read(reader), [
        { type: "interrupted", node: "a", reason: "connection reset", graceMs: 30_000 }
      ])
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
