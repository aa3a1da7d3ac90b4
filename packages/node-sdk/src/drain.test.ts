// How a node stops taking runs: because its process ends, or because the edge asks.

import { assert, describe, it } from "@effect/vitest"
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { config, startNode, untilDial } from "../test/agentFixture.ts"

const started = Effect.gen(function* () {
  const node = yield* startNode()
  const link = yield* node.edge.link
  yield* link.accept({ config: { ...config, runtime: { drainTimeoutMs: 8_000 } } })
  yield* link.ready
  return { ...node, link }
})

describe("the end of the process", () => {
  it.effect("tells the edge, lets runs finish, says goodbye and does not come back", () =>
    Effect.gen(function* () {
      const { agent, edge, link } = yield* started
      const run = link.run({ adapter: "w", target: "never" })
      yield* link.ping
      const draining = yield* Effect.forkChild(agent.drain)
      yield* link.statusWhere((status) => status.draining)
      const [refused] = yield* link.run({ adapter: "w", target: "t" }).toEnd
      assert.deepInclude(refused, { type: "failed", message: "the node is draining", retryable: true })
      link.cancel(run)
      yield* run.toEnd
      assert.strictEqual((yield* link.goodbye).code, GoodbyeCode.SHUTDOWN)
      yield* link.closed
      yield* Fiber.join(draining)
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(edge.dials(), 1)
    })
  )

  it.effect("stops runs that do not finish within the drain timeout", () =>
    Effect.gen(function* () {
      const { agent, link } = yield* started
      const run = link.run({ adapter: "w", target: "never" })
      const stubborn = link.run({ adapter: "w", target: "stubborn" })
      yield* link.ping
      const draining = yield* Effect.forkChild(agent.drain)
      yield* TestClock.adjust("7999 millis")
      assert.deepStrictEqual(run.received, [])
      yield* TestClock.adjust("1 millis")
      const [failed] = yield* run.toEnd
      assert.deepInclude(failed, { type: "failed", code: "internal", retryable: true })
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* link.goodbye).code, GoodbyeCode.SHUTDOWN)
      yield* Fiber.join(draining)
      assert.deepStrictEqual(stubborn.received, [])
    })
  )

  it.effect("waits for nobody when there is neither link nor run", () =>
    Effect.gen(function* () {
      const { agent } = yield* startNode({
        dial: () => Effect.fail({ kind: "refused", message: "nothing listens" })
      })
      yield* agent.drain
    })
  )
})

describe("a drain by the edge", () => {
  it.effect("ends with a goodbye, after which the node registers again", () =>
    Effect.gen(function* () {
      const { edge, link } = yield* started
      const run = link.run({ adapter: "w", target: "never" })
      yield* link.ping
      link.drain(30_000)
      yield* link.statusWhere((status) => status.draining)
      link.cancel(run)
      yield* run.toEnd
      assert.strictEqual((yield* link.goodbye).code, GoodbyeCode.SHUTDOWN)
      yield* link.closed
      yield* untilDial(edge, 2)
      const second = yield* edge.link
      assert.deepStrictEqual((yield* second.accept({ config })).heldRuns, [])
      assert.isFalse((yield* second.ready).draining)
      assert.strictEqual((yield* second.run({ adapter: "w", target: "t" }).toEnd).at(-1)?.type, "completed")
    })
  )

  it.effect("ED5 does not end the heartbeats while runs finish", () =>
    Effect.gen(function* () {
      const { edge, link } = yield* started
      link.run({ adapter: "w", target: "never" })
      yield* link.ping
      link.drain(25_000)
      for (let beat = 0; beat < 4; beat++) {
        yield* TestClock.adjust("5 seconds")
        yield* link.ping
      }
      assert.strictEqual(edge.dials(), 1)
    })
  )
})
