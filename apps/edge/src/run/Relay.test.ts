import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { describe } from "vitest"
import { Relay, type RelayHost, type RelayReader } from "./Relay.ts"
import type { RunEvent } from "./RunEvent.ts"

const piece = (text: string): RunEvent => ({ type: "delta", choice: 0, kind: "text", text })

/** A relay whose clock stands still, with what it told its host. */
const make = (logBytes = 1000) => {
  const told: Array<string> = []
  const host: RelayHost = {
    now: () => 0,
    after: () => () => {},
    ownerRead: () => told.push("ownerRead"),
    left: () => told.push("left"),
    slow: (_reader, failure) => told.push(`slow: ${failure.message}`)
  }
  return { relay: new Relay({ logBytes, consumerMs: 30_000 }, host), told }
}

const opened = (reader: RelayReader | undefined): RelayReader => {
  if (reader === undefined) throw new Error("no reader")
  return reader
}

const texts = (reader: RelayReader, maxBytes?: number) =>
  reader
    .take(maxBytes)
    .map(({ event }) => (event.type === "delta" && "text" in event ? event.text : event.type))

describe("a relay", () => {
  it("gives every reader every event from its own position", () => {
    const { relay } = make()
    const first = opened(relay.reader(0, true))
    relay.append(piece("1"), 10)
    relay.append(piece("2"), 10)
    assert.deepStrictEqual(texts(first), ["1", "2"])
    const later = opened(relay.reader(1, false))
    relay.append(piece("3"), 10)
    assert.deepStrictEqual(texts(first), ["3"])
    assert.deepStrictEqual(texts(later), ["2", "3"])
    assert.isFalse(later.done())
    relay.seal()
    assert.isTrue(later.done())
  })

  it("refuses a reader from before its oldest event, and from after its newest", () => {
    const { relay } = make(500)
    for (let i = 0; i < 10; i++) relay.append(piece("x"), 10)
    assert.isUndefined(relay.reader(0, false))
    assert.isUndefined(relay.reader(11, false))
    assert.strictEqual(opened(relay.reader(relay.firstSeq - 1, false)).take().length, 10 - relay.firstSeq + 1)
  })

  it("calls a reader once when there is something, and at once when there already is", () => {
    const { relay } = make()
    const reader = opened(relay.reader(0, true))
    let calls = 0
    reader.onReady(() => calls++)
    relay.wake()
    assert.strictEqual(calls, 0)
    relay.append(piece("1"), 10)
    relay.append(piece("2"), 10)
    relay.wake()
    relay.wake()
    assert.strictEqual(calls, 1)
    reader.onReady(() => calls++)
    assert.strictEqual(calls, 2)
    reader.take()
    reader.onReady(() => calls++)
    relay.seal()
    relay.wake()
    assert.strictEqual(calls, 3)
  })

  it("takes at most about what is asked for, but always one event", () => {
    const { relay } = make(1_000_000)
    const reader = opened(relay.reader(0, true))
    for (let i = 0; i < 10; i++) relay.append(piece(String(i)), 1000)
    assert.deepStrictEqual(texts(reader, 1), ["0"])
    assert.deepStrictEqual(texts(reader, 2000), ["1", "2"])
  })

  it("keeps what the owner has not read, and says when that is too much", () => {
    const { relay, told } = make(1000)
    const owner = opened(relay.reader(0, true))
    for (let i = 0; i < 20; i++) relay.append(piece(String(i)), 100)
    assert.isTrue(relay.ownerBehind)
    assert.strictEqual(relay.firstSeq, 1)
    while (owner.position < 20) owner.take()
    assert.isFalse(relay.ownerBehind)
    assert.isAtMost(relay.bytes, 1000)
    assert.include(told, "ownerRead")
  })

  it("lets an observer fall out, alone, with where to go on", () => {
    const { relay, told } = make(1000)
    const owner = opened(relay.reader(0, true))
    const observer = opened(relay.reader(0, false))
    for (let i = 0; i < 20; i++) {
      relay.append(piece(String(i)), 100)
      owner.take()
    }
    assert.strictEqual(observer.failure()?.code, "slow_consumer")
    assert.isTrue(observer.done())
    assert.isUndefined(owner.failure())
    assert.match(
      told.find((line) => line.startsWith("slow")) ?? "",
      /fell more than 1000 bytes behind the run; read again from event \d+/
    )
  })

  it("holds nobody back once the owner has left", () => {
    const { relay, told } = make(1000)
    opened(relay.reader(0, true)).close()
    for (let i = 0; i < 100; i++) relay.append(piece("x"), 100)
    assert.isFalse(relay.ownerBehind)
    assert.isAtMost(relay.bytes, 1000)
    assert.deepStrictEqual(told, ["ownerRead", "left"])
  })

  it("joins small pieces of text for an owner that is behind, and never what somebody has seen", () => {
    const { relay } = make(10_000_000)
    const owner = opened(relay.reader(0, true))
    for (let i = 0; i < 20_000; i++) relay.append(piece(`${i},`), 12)
    const all = texts(owner, 100_000_000)
    assert.strictEqual(all.join(""), Array.from({ length: 20_000 }, (_, i) => `${i},`).join(""))
    assert.isBelow(all.length, 500)
    assert.isAtMost(Math.max(...all.map((text) => text.length)), 8 * 1024)
    // It has caught up: pieces come as they are.
    relay.append(piece("a"), 12)
    relay.append(piece("b"), 12)
    assert.deepStrictEqual(texts(owner), ["a", "b"])
    // An observer that has the last event keeps it whole.
    for (let i = 0; i < 1000; i++) relay.append(piece("x"), 12)
    const observer = opened(relay.reader(relay.lastSeq, false))
    relay.append(piece("y"), 12)
    assert.deepStrictEqual(texts(observer), ["y"])
    relay.append({ type: "delta", choice: 1, kind: "text", text: "other choice" }, 12)
    relay.append({ type: "delta", choice: 1, kind: "reasoning", text: "other kind" }, 12)
    assert.deepStrictEqual(texts(observer), ["other choice", "other kind"])
    relay.seal()
    let rest = ""
    while (!owner.done()) rest += texts(owner).join("")
    assert.strictEqual(rest, `${"x".repeat(1000)}yother choiceother kind`)
  })

  it.effect.prop(
    "loses, doubles and swaps nothing for an owner that reads whenever it wants",
    {
      steps: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))),
      size: Schema.Literals([100, 9000])
    },
    ({ steps, size }) =>
      Effect.sync(() => {
        const { relay } = make(1500)
        const owner = opened(relay.reader(0, true))
        const got: Array<string> = []
        let sent = 0
        for (const many of steps) {
          if (many === 0) got.push(...texts(owner, 300))
          else for (let i = 0; i < many; i++) relay.append(piece(`${sent++},`), size)
        }
        relay.seal()
        while (!owner.done()) got.push(...texts(owner))
        assert.strictEqual(got.join(""), Array.from({ length: sent }, (_, i) => `${i},`).join(""))
        if (size === 100) assert.strictEqual(got.length, sent)
      }),
    { arbitrary: { runs: 300 } }
  )
})
