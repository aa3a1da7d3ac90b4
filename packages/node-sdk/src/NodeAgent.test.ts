// The agent against a scripted edge in memory, on virtual time.

import { assert, describe, it } from "@effect/vitest"
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { Effect, Random } from "effect"
import { TestClock } from "effect/testing"
import { config, startNode, TOKEN, untilDial, wordsAdapter } from "../test/agentFixture.ts"
import { textDelta } from "./textDelta.ts"

/** Dials with the longest waits that the backoff allows. */
const patient = Effect.provideService(Random.Random, {
  nextIntUnsafe: () => 0,
  nextDoubleUnsafe: () => 1
})

describe("registration", () => {
  it.effect("says who it is, applies the configuration and runs what it is asked for", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      const link = yield* edge.link
      const request = yield* link.accept({ config })
      assert.strictEqual(request.token, TOKEN)
      assert.strictEqual(request.bootId.length, 16)
      assert.deepStrictEqual(request.adapterKinds, ["words"])
      assert.deepStrictEqual(request.heldRuns, [])
      const status = yield* link.ready
      assert.strictEqual(status.configRevision, "r1")
      assert.isFalse(status.draining)
      assert.deepStrictEqual(
        status.adapters.map(({ name, slots, targets }) => [name, slots, targets[0]?.name]),
        [["w", 2, "t"]]
      )
      const run = link.run({ adapter: "w", target: "t" })
      assert.deepStrictEqual(yield* run.toEnd, [
        { type: "started" },
        textDelta("one "),
        textDelta("two"),
        { type: "completed", finishReason: "stop" }
      ])
      assert.deepStrictEqual(run.violations, [])
    })
  )

  it.effect("RG3 a wrong token is reported once, without the token, and retried slowly", () =>
    Effect.gen(function* () {
      const { edge, lines } = yield* startNode()
      const rejected = {
        code: RejectCode.UNKNOWN_TOKEN,
        message: "no node has this token",
        retryable: false
      }
      yield* (yield* edge.link).reject(rejected)
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual(edge.dials(), 1)
      const told = lines.filter((line) => line.includes("unknown_token"))
      // The next attempt comes within a minute, give or take the steps of this clock: it may be told again or not.
      yield* untilDial(edge, 2)
      yield* (yield* edge.link).reject(rejected)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(told.length, 1)
      assert.match(
        told[0]!,
        /^Warn the edge refused this node \(unknown_token\): no node has this token; next/
      )
      assert.notInclude(lines.join("\n"), TOKEN)
    })
  )

  it.effect("RG10 an unsupported version is reported in the edge's words and retried slowly", () =>
    Effect.gen(function* () {
      const { edge, lines } = yield* startNode()
      yield* (yield* edge.link).reject({
        code: RejectCode.UNSUPPORTED_VERSION,
        message: "this edge speaks 2, the node 1",
        retryable: false
      })
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual(edge.dials(), 1)
      assert.match(
        lines.join("\n"),
        /unsupported_version.*this edge speaks 2, the node 1.*slowly from now on/
      )
    })
  )

  it.effect("RG12 comes back by itself to an edge that drains, not before the edge said", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      yield* (yield* edge.link).reject({
        code: RejectCode.DRAINING,
        message: "draining",
        retryable: true,
        retryAfterMs: 10_000
      })
      yield* TestClock.adjust("9999 millis")
      assert.strictEqual(edge.dials(), 1)
      yield* TestClock.adjust("1001 millis")
      assert.strictEqual(edge.dials(), 2)
      yield* (yield* edge.link).accept({ config })
    })
  )

  it.effect("gives up on a peer that accepts the connection and never answers", () =>
    Effect.gen(function* () {
      const { edge, lines } = yield* startNode()
      const link = yield* edge.link
      yield* TestClock.adjust("10 seconds")
      yield* link.closed
      yield* untilDial(edge, 2)
      assert.match(lines.join("\n"), /did not answer the registration within 10000 ms/)
    })
  )

  it.effect("keeps its boot id over links", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      const first = yield* edge.link
      const { bootId } = yield* first.accept({ config })
      first.cut()
      yield* first.closed
      yield* untilDial(edge, 2)
      assert.deepStrictEqual((yield* (yield* edge.link).accept({ config })).bootId, bootId)
    })
  )
})

describe("redialling", () => {
  it.effect(
    "LK9 tries for ever, 1 s doubling to 30 s, and logs each kind of reason once a minute at most",
    () =>
      Effect.gen(function* () {
        const { edge, lines } = yield* startNode()
        edge.refuseDials({ kind: "refused", message: "nothing listens at edge:7610" })
        const at: Array<number> = []
        yield* TestClock.adjust("1 millis")
        let seen = edge.dials()
        for (let second = 1; second <= 180; second++) {
          yield* TestClock.adjust("1 seconds")
          if (edge.dials() > seen) at.push(second)
          seen = edge.dials()
        }
        assert.deepStrictEqual(at, [1, 3, 7, 15, 31, 61, 91, 121, 151])
        const refused = lines.filter((line) => line.includes("nothing listens"))
        assert.deepStrictEqual(
          refused.map((line) => /"repeated":(\d+)/.exec(line)?.[1]),
          [undefined, "5", "1"]
        )
        edge.refuseDials({ kind: "unresolved", message: "the name edge is not known" })
        yield* TestClock.adjust("60 seconds")
        assert.strictEqual(lines.filter((line) => line.includes("the name edge is not known")).length, 1)
        edge.refuseDials(undefined)
        yield* TestClock.adjust("30 seconds")
        yield* (yield* edge.link).accept({ config })
      }).pipe(patient)
  )

  it.effect("LK3 begins the backoff anew after a link that held for 10 s, and not after a shorter one", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      edge.refuseDials({ kind: "refused", message: "nothing listens" })
      yield* TestClock.adjust("16 seconds")
      assert.strictEqual(edge.dials(), 5)
      edge.refuseDials(undefined)
      yield* TestClock.adjust("15 seconds")
      const short = yield* edge.link
      yield* short.accept({ config })
      yield* TestClock.adjust("9 seconds")
      short.cut()
      yield* short.closed
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual(edge.dials(), 6)
      yield* TestClock.adjust("1 seconds")
      const long = yield* edge.link
      yield* long.accept({ config })
      yield* TestClock.adjust("10 seconds")
      long.cut()
      yield* long.closed
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(edge.dials(), 8)
    }).pipe(patient)
  )

  it.effect("LK3 counts what a good link is in the edge's heartbeats", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      edge.refuseDials({ kind: "refused", message: "nothing listens" })
      yield* TestClock.adjust("16 seconds")
      assert.strictEqual(edge.dials(), 5)
      edge.refuseDials(undefined)
      yield* TestClock.adjust("15 seconds")
      const link = yield* edge.link
      yield* link.accept({ config, heartbeatIntervalMs: 400 })
      yield* TestClock.adjust("800 millis")
      link.cut()
      yield* link.closed
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(edge.dials(), 7)
    }).pipe(patient)
  )

  it.effect("says why the edge ended a link", () =>
    Effect.gen(function* () {
      const { edge, lines } = yield* startNode()
      const link = yield* edge.link
      yield* link.accept({ config })
      yield* link.ready
      link.sayGoodbye(GoodbyeCode.TAKEN_OVER, "10.0.0.7 has the token now")
      yield* link.closed
      yield* untilDial(edge, 2)
      assert.match(
        lines.join("\n"),
        /another process with the same token took over .*: 10\.0\.0\.7 has the token now/
      )
    })
  )

  it.effect("ends a link whose edge breaks the protocol, without giving up its runs", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      const link = yield* edge.link
      yield* link.accept({ config })
      yield* link.ready
      link.sendRaw(new Uint8Array([0xff, 0xff, 0xff]))
      yield* link.closed
      assert.isFalse(yield* link.saidGoodbye)
    })
  )

  it.effect("does not tell its token to a peer that speaks first", () =>
    Effect.gen(function* () {
      const sent: Array<Uint8Array> = []
      let destroyed = 0
      const { lines } = yield* startNode({
        dial: ({ onFrames }) =>
          Effect.sync(() => {
            onFrames([new TextEncoder().encode("SSH-2.0-OpenSSH_9.6")])
            return {
              send: (frame) => sent.push(frame),
              setMaxFrameBytes: () => undefined,
              close: () => undefined,
              destroy: () => destroyed++
            }
          })
      })
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(sent, [])
      assert.isAtLeast(destroyed, 1)
      assert.match(lines.join("\n"), /the peer does not speak this protocol/)
    })
  )
})

describe("heartbeats", () => {
  it.effect("answers pings while a run floods the link", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      const link = yield* edge.link
      yield* link.accept({ config })
      yield* link.ready
      const run = link.run({ adapter: "w", target: "endless", autoAck: false })
      yield* run.next
      yield* link.ping
      assert.isAtMost(run.maxUnackedBytes, 256 * 1024)
    })
  )

  it.effect("LK1 gives up a silent edge after three intervals, and not before", () =>
    Effect.gen(function* () {
      const { edge, lines } = yield* startNode()
      const link = yield* edge.link
      yield* link.accept({ config })
      yield* link.ready
      for (let beat = 0; beat < 10; beat++) {
        yield* TestClock.adjust("5 seconds")
        yield* link.ping
      }
      yield* TestClock.adjust("14999 millis")
      yield* link.ping
      yield* TestClock.adjust("14999 millis")
      assert.strictEqual(edge.dials(), 1)
      yield* TestClock.adjust("1 millis")
      yield* link.closed
      assert.isFalse(yield* link.saidGoodbye)
      assert.match(lines.join("\n"), /the edge was silent for 15000 ms, 15000 ms are allowed/)
    })
  )

  it.effect("obeys the interval that the edge names", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      const link = yield* edge.link
      yield* link.accept({ config, heartbeatIntervalMs: 100, heartbeatDeadAfter: 5 })
      yield* link.ready
      yield* TestClock.adjust("500 millis")
      yield* link.closed
    })
  )
})

describe("configuration", () => {
  it.effect("RG13 reports kinds that it does not have as unavailable, with the reason", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      const link = yield* edge.link
      yield* link.accept({
        config: { adapters: [{ name: "o", slots: 1, settings: { case: "ollama", value: {} } }] }
      })
      const [adapter] = (yield* link.status).adapters
      assert.strictEqual(adapter?.state, AdapterState.UNAVAILABLE)
      assert.strictEqual(adapter?.reason, "this node has no adapter of type ollama; it has words")
      const run = link.run({ adapter: "o", target: "x" })
      const [failed] = yield* run.toEnd
      assert.deepInclude(failed, { type: "failed", code: "rejected", retryable: true })
    })
  )

  it.effect("leaves adapters alone whose configuration is the same, and stops those that are gone", () =>
    Effect.gen(function* () {
      const { edge } = yield* startNode()
      const first = yield* edge.link
      yield* first.accept({ config: { adapters: [wordsAdapter(), wordsAdapter({ name: "v" })] } })
      yield* first.ready
      const kept = first.run({ adapter: "w", target: "never", runId: "kept" })
      const lost = first.run({ adapter: "v", target: "never", runId: "lost" })
      yield* first.ping
      first.cut()
      yield* first.closed
      yield* untilDial(edge, 2)
      const second = yield* edge.link
      yield* second.accept({ config: { revision: "r2", ...config }, resume: [kept, lost] })
      const status = yield* second.ready
      assert.strictEqual(status.configRevision, "r2")
      assert.deepStrictEqual(
        status.adapters.map(({ name, slotsInUse }) => [name, slotsInUse]),
        [["w", 1]]
      )
      const [failed] = yield* lost.toEnd
      assert.deepInclude(failed, { type: "failed", code: "internal", retryable: true })
      second.cancel(kept)
      assert.deepStrictEqual(yield* kept.toEnd, [{ type: "cancelled", reason: "cancelled by the test" }])
    })
  )
})

const registered = Effect.gen(function* () {
  const node = yield* startNode()
  const link = yield* node.edge.link
  yield* link.accept({ config })
  yield* link.ready
  return { ...node, link }
})

describe("runs", () => {
  it.effect("refuses what it can't run, so that another node may", () =>
    Effect.gen(function* () {
      const { link } = yield* registered
      const reasonOf = (adapter: string, target: string) =>
        Effect.map(link.run({ adapter, target }).toEnd, ([event]) =>
          event?.type === "failed" ? [event.code, event.retryable, event.message] : event
        )
      assert.deepStrictEqual(yield* reasonOf("x", "t"), ["rejected", true, "this node has no adapter x"])
      assert.deepStrictEqual(yield* reasonOf("w", "x"), ["rejected", true, "adapter w has no target x"])
      link.run({ adapter: "w", target: "never" })
      link.run({ adapter: "w", target: "never" })
      assert.deepStrictEqual(yield* reasonOf("w", "t"), [
        "rejected",
        true,
        "all 2 slots of adapter w are taken"
      ])
    })
  )

  it.effect("gives a whole answer as one delta", () =>
    Effect.gen(function* () {
      const { link } = yield* registered
      assert.deepStrictEqual(yield* link.run({ adapter: "w", target: "t", stream: false }).toEnd, [
        { type: "started" },
        textDelta("one two"),
        { type: "completed", finishReason: "stop" }
      ])
    })
  )

  it.effect("says of a failed adapter what it said, and of a crashed one nothing of its inside", () =>
    Effect.gen(function* () {
      const { link, lines } = yield* registered
      const failed = yield* link.run({ adapter: "w", target: "fails" }).toEnd
      assert.deepStrictEqual(failed.at(-1), {
        type: "failed",
        code: "timeout",
        message: "the backend took too long",
        retryable: true,
        backendStatus: 504
      })
      for (const target of ["dies", "throws"]) {
        assert.deepStrictEqual(yield* link.run({ adapter: "w", target }).toEnd, [
          {
            type: "failed",
            code: "internal",
            message: "the adapter crashed; the node's log says more",
            retryable: true
          }
        ])
      }
      assert.strictEqual(
        lines.filter((line) => line.startsWith("Error an adapter crashed in a run")).length,
        2
      )
    })
  )

  it.effect("SL1 a run whose window is full waits alone", () =>
    Effect.gen(function* () {
      const { link } = yield* registered
      const slow = link.run({ adapter: "w", target: "endless", autoAck: false })
      const fast = link.run({ adapter: "w", target: "t" })
      assert.strictEqual((yield* fast.toEnd).length, 4)
      yield* link.ping
      const before = slow.lastSeq
      assert.isAbove(slow.unackedBytes, 255 * 1024)
      assert.isAtMost(slow.maxUnackedBytes, 256 * 1024)
      yield* link.ping
      assert.strictEqual(slow.lastSeq, before)
      slow.ack()
      yield* link.ping
      assert.isAbove(slow.lastSeq, before)
    })
  )

  it.effect("EV10 a delta larger than the window arrives whole", () =>
    Effect.gen(function* () {
      const { link } = yield* registered
      const events = yield* link.run({ adapter: "w", target: "large" }).toEnd
      assert.deepStrictEqual(events[1], textDelta("x".repeat(512 * 1024)))
    })
  )

  it.effect("cuts a delta that no frame can carry, between two characters", () =>
    Effect.gen(function* () {
      const { link } = yield* registered
      const events = yield* link.run({ adapter: "w", target: "huge" }).toEnd
      const texts = events.flatMap((event) => (event.type === "delta" && "text" in event ? [event.text] : []))
      assert.isAbove(texts.length, 2)
      assert.isTrue(texts.every((text) => text.isWellFormed()))
      assert.strictEqual(texts.join(""), "안녕😀".repeat(250_000))
    })
  )

  it.effect("CN2 answers a cancel with cancelled, and frees the slot", () =>
    Effect.gen(function* () {
      const { link } = yield* registered
      const runs = [
        link.run({ adapter: "w", target: "never" }),
        link.run({ adapter: "w", target: "endless" })
      ]
      yield* link.ping
      for (const run of runs) {
        link.cancel(run, "the caller left")
        assert.deepStrictEqual((yield* run.toEnd).at(-1), { type: "cancelled", reason: "the caller left" })
      }
      assert.strictEqual((yield* link.run({ adapter: "w", target: "t" }).toEnd).at(-1)?.type, "completed")
    })
  )

  it.effect("CN3 keeps the slot of a run whose adapter ignores the cancel", () =>
    Effect.gen(function* () {
      const { link } = yield* registered
      const stubborn = link.run({ adapter: "w", target: "stubborn" })
      link.run({ adapter: "w", target: "never" })
      link.cancel(stubborn)
      yield* TestClock.adjust("10 seconds")
      yield* link.ping
      assert.deepStrictEqual(stubborn.received, [])
      const [event] = yield* link.run({ adapter: "w", target: "t" }).toEnd
      assert.deepInclude(event, { type: "failed", code: "rejected" })
    })
  )

  it.effect("CN6 a second cancel, and one after the end, change nothing", () =>
    Effect.gen(function* () {
      const { link } = yield* registered
      const run = link.run({ adapter: "w", target: "never" })
      link.cancel(run, "first")
      link.cancel(run, "second")
      assert.deepStrictEqual(yield* run.toEnd, [{ type: "cancelled", reason: "first" }])
      link.cancel(run, "late")
      const slow = link.run({ adapter: "w", target: "slow-stop" })
      link.cancel(slow, "first")
      link.cancel(slow, "second")
      yield* link.ping
      assert.deepStrictEqual(slow.received, [])
      yield* TestClock.adjust("1 seconds")
      assert.deepStrictEqual(yield* slow.toEnd, [{ type: "cancelled", reason: "first" }])
      yield* link.ping
      assert.deepStrictEqual(run.violations, [])
      assert.strictEqual(run.lastSeq, 1)
    })
  )
})
