import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Timers } from "../node/Timers.ts"
import { type BeatingLink, Heartbeats } from "./Heartbeats.ts"
import { judgePulse, stoodStill } from "./heartbeat.ts"

const settings = { intervalMs: 5000, suspectAfter: 2, deadAfter: 3 }

describe("judgePulse", () => {
  it.each([
    [0, "alive"],
    [9999, "alive"],
    [10_000, "suspect"],
    [14_999, "suspect"],
    [15_000, "dead"],
    [60_000, "dead"]
  ] as const)("silent for %i ms: %s", (silentMs, state) => {
    const pulse = { lastFrameAt: 1000, lastPingAt: 1000, excusedUntil: 0 }
    assert.strictEqual(judgePulse(pulse, 1000 + silentMs, settings).state, state)
  })

  it("an excused link is not judged, but one that answers is alive", () => {
    const pulse = { lastFrameAt: 0, lastPingAt: 0, excusedUntil: 65_000 }
    assert.strictEqual(judgePulse(pulse, 60_000, settings).state, "excused")
    assert.strictEqual(judgePulse({ ...pulse, lastFrameAt: 59_000 }, 60_000, settings).state, "alive")
    assert.strictEqual(judgePulse(pulse, 65_000, settings).state, "dead")
  })

  it("asks for a ping once per interval", () => {
    const pulse = { lastFrameAt: 0, lastPingAt: 0, excusedUntil: 0 }
    assert.isFalse(judgePulse(pulse, 4000, settings).pingDue)
    assert.isTrue(judgePulse(pulse, 5000, settings).pingDue)
  })

  it("a timer late by half an interval says that this process stood still", () => {
    assert.isFalse(stoodStill(1000, 3499, 5000))
    assert.isTrue(stoodStill(1000, 3500, 5000))
  })
})

class FakeLink implements BeatingLink {
  lastFrameAt: number
  lastPingAt: number
  excusedUntil = 0
  answers = true
  readonly told: Array<string> = []
  #suspect = false
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
    this.lastFrameAt = now()
    this.lastPingAt = now()
  }

  ping = () => {
    this.told.push(`ping ${this.#now()}`)
    if (this.answers) this.lastFrameAt = this.#now()
  }
  setSuspect = (suspect: boolean) => {
    if (suspect !== this.#suspect) this.told.push(`${suspect ? "suspect" : "alive"} ${this.#now()}`)
    this.#suspect = suspect
  }
  dead = (silentMs: number) => {
    this.told.push(`dead ${this.#now()} after ${silentMs}`)
  }
}

/** Heartbeats on the virtual clock. `pause` lets the clock run on while the process stands still. */
const fixture = Effect.gen(function* () {
  const timers = yield* Timers
  const start = timers.now()
  let paused = 0
  const now = () => Math.round(timers.now() - start) + paused
  const links = new Set<FakeLink>()
  const heartbeats = new Heartbeats(
    { ...timers, now },
    settings,
    () => links,
    (look) => look()
  )
  heartbeats.start()
  yield* Effect.addFinalizer(() => Effect.sync(() => heartbeats.stop()))
  const pause = (ms: number) => {
    paused += ms
  }
  return { now, links, pause }
})

const run = <A>(effect: Effect.Effect<A, never, Timers>) => Effect.provide(effect, Timers.layer)

describe("Heartbeats", () => {
  it.effect("pings each link once per interval and leaves one that answers alone", () =>
    Effect.gen(function* () {
      const { now, links } = yield* fixture
      const link = new FakeLink(now)
      links.add(link)
      yield* advance(20_000)
      assert.deepStrictEqual(link.told, ["ping 5000", "ping 10000", "ping 15000", "ping 20000"])
    }).pipe(Effect.scoped, run)
  )

  it.effect("LK1 a silent link is suspect at 10 s and dead at 15 s", () =>
    Effect.gen(function* () {
      const { now, links } = yield* fixture
      const link = new FakeLink(now)
      link.answers = false
      link.dead = (silentMs) => {
        link.told.push(`dead ${now()} after ${silentMs}`)
        links.delete(link)
      }
      links.add(link)
      yield* advance(30_000)
      assert.deepStrictEqual(link.told, [
        "ping 5000",
        "suspect 10000",
        "ping 10000",
        "dead 15000 after 15000"
      ])
    }).pipe(Effect.scoped, run)
  )

  it.effect("LK5 a node that is paused for 12 s is suspect, then alive, never dead", () =>
    Effect.gen(function* () {
      const { now, links } = yield* fixture
      const link = new FakeLink(now)
      links.add(link)
      link.answers = false
      yield* advance(12_000)
      link.lastFrameAt = now()
      link.answers = true
      yield* advance(10_000)
      assert.deepStrictEqual(
        link.told.filter((what) => !what.startsWith("ping")),
        ["suspect 10000", "alive 13000"]
      )
    }).pipe(Effect.scoped, run)
  )

  it.effect("an edge that stood still gives every link one more interval before it judges", () =>
    Effect.gen(function* () {
      const { now, links, pause } = yield* fixture
      const answers = new FakeLink(now)
      const silent = new FakeLink(now)
      silent.answers = false
      silent.dead = () => {
        silent.told.push(`dead ${now()}`)
        links.delete(silent)
      }
      links.add(answers)
      links.add(silent)
      yield* advance(1000)
      pause(60_000)
      yield* advance(10_000)
      assert.deepStrictEqual(silent.told, ["ping 62000", "dead 67000"])
      assert.deepStrictEqual(answers.told, ["ping 62000", "ping 67000"])
    }).pipe(Effect.scoped, run)
  )
})

const advance = (ms: number) =>
  Effect.gen(function* () {
    for (let at = 0; at < ms; at += 1000) yield* TestClock.adjust("1 second")
  })
