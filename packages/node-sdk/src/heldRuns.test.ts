// Runs over more than one link: held, resumed, dropped.

import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { config, startNode, untilDial } from "../test/agentFixture.ts"

const started = (options: Parameters<typeof startNode>[0] = {}) =>
  Effect.gen(function* () {
    const node = yield* startNode(options)
    const link = yield* node.edge.link
    yield* link.accept({ config })
    yield* link.ready
    const relink = Effect.gen(function* () {
      yield* untilDial(node.edge, node.edge.dials() + 1)
      return yield* node.edge.link
    })
    return { ...node, link, relink }
  })

describe("a lost link", () => {
  it.effect("ND4 a run goes on after the last event that the edge has, nothing lost and nothing twice", () =>
    Effect.gen(function* () {
      const { link, relink } = yield* started()
      const run = link.run({ adapter: "w", target: "endless", autoAck: false, runId: "r-1" })
      yield* link.ping
      run.ack(100)
      yield* link.ping
      const before = run.lastSeq
      link.cut()
      yield* link.closed
      const second = yield* relink
      const { heldRuns } = yield* second.accept({ config, resume: [run] })
      assert.deepInclude(heldRuns[0], { runId: "r-1", attempt: 1, firstUnackedSeq: 101 })
      assert.isAtLeast(heldRuns[0]!.lastSeq, before)
      run.ack()
      yield* second.ping
      second.cancel(run)
      yield* second.ping
      run.ack()
      yield* run.toEnd
      assert.isAbove(run.lastSeq, before)
      assert.deepStrictEqual(run.violations, [])
      const texts = run.received.flatMap((event) =>
        event.type === "delta" && "text" in event ? [event.text] : []
      )
      assert.deepStrictEqual(
        texts.map((text) => Number.parseInt(text, 10)),
        texts.map((_, index) => index)
      )
    })
  )

  it.effect("the end of a run that nobody acknowledged is sent again", () =>
    Effect.gen(function* () {
      const { link, relink } = yield* started()
      const run = link.run({ adapter: "w", target: "t", autoAck: false, runId: "r-1" })
      yield* run.toEnd
      run.ack(2)
      yield* link.ping
      link.cut()
      yield* link.closed
      const second = yield* relink
      // What the edge had received but not acknowledged is lost with its process, say.
      run.rewind(2)
      const { heldRuns } = yield* second.accept({ config, resume: [run] })
      assert.deepInclude(heldRuns[0], { runId: "r-1", firstUnackedSeq: 3, lastSeq: 4 })
      assert.deepStrictEqual(
        (yield* run.toEnd).map((event) => event.type),
        ["delta", "completed"]
      )
      run.ack()
      yield* second.ping
      second.cut()
      yield* second.closed
      const third = yield* relink
      assert.deepStrictEqual((yield* third.accept({ config })).heldRuns, [])
    })
  )

  it.effect("ED4 runs that a new edge does not know, or cancels, are stopped and their slots freed", () =>
    Effect.gen(function* () {
      const { lines, link, relink } = yield* started()
      link.run({ adapter: "w", target: "never", runId: "unknown" })
      link.run({ adapter: "w", target: "endless", autoAck: false, runId: "cancelled" })
      yield* link.ping
      link.cut()
      yield* link.closed
      const second = yield* relink
      const { heldRuns } = yield* second.accept({
        config,
        edgeId: "another",
        decisions: [
          {
            runId: "cancelled",
            attempt: 1,
            decision: { case: "cancel", value: { reason: "of an earlier edge process" } }
          }
        ]
      })
      assert.deepStrictEqual(
        heldRuns.map(({ runId }) => runId),
        ["unknown", "cancelled"]
      )
      const status = yield* second.ready
      assert.strictEqual(status.adapters[0]?.slotsInUse, 0)
      assert.deepStrictEqual(second.strayEvents, [])
      assert.match(lines.join("\n"), /runs were dropped.*"runs":2.*unknown: the edge does not know the run/)
      second.cut()
      yield* second.closed
      assert.deepStrictEqual((yield* (yield* relink).accept({ config })).heldRuns, [])
    })
  )

  it.effect("EV12 a resumption that does not fit is not tried", () =>
    Effect.gen(function* () {
      const { lines, link, relink } = yield* started()
      const run = link.run({ adapter: "w", target: "endless", autoAck: false, runId: "r-1" })
      yield* link.ping
      run.ack(50)
      yield* link.ping
      link.cut()
      yield* link.closed
      const second = yield* relink
      yield* second.accept({
        config,
        decisions: [
          { runId: "r-1", attempt: 1, decision: { case: "resume", value: { afterSeq: 20, handle: 9 } } }
        ]
      })
      yield* second.ready
      assert.deepStrictEqual(second.strayEvents, [])
      assert.match(lines.join("\n"), /r-1: the edge wants to go on after event 20, this node holds 51 to/)
    })
  )

  it.effect("runs are given up when there is no edge for too long", () =>
    Effect.gen(function* () {
      const { edge, link, lines } = yield* started({ holdRunsMs: 60_000 })
      link.run({ adapter: "w", target: "never" })
      yield* link.ping
      edge.refuseDials({ kind: "refused", message: "nothing listens" })
      link.cut()
      yield* link.closed
      yield* TestClock.adjust("61 seconds")
      assert.match(lines.join("\n"), /runs were given up, there was no link for too long .*"runs":1/)
      edge.refuseDials(undefined)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual((yield* (yield* edge.link).accept({ config })).heldRuns, [])
    })
  )
})
