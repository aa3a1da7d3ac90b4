// The agent against a scripted edge in memory, on virtual time.

import { assert, describe, it } from "@effect/vitest"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { Effect, Fiber, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"
import { defineAdapter } from "./Adapter.ts"
import { makeNodeAgent, type NodeAgentOptions } from "./NodeAgent.ts"
import { type MemoryEdge, memoryEdge } from "./testkit/scriptedEdge.ts"
import { textDelta } from "./textDelta.ts"

const words = defineAdapter({
  kind: "words",
  start: () => Effect.succeed({ run: () => Stream.make(textDelta("one "), textDelta("two")) })
})

const config = {
  adapters: [
    { name: "w", slots: 2, targets: ["t"], settings: { case: "custom" as const, value: { kind: "words" } } }
  ]
}

const start = (edge: MemoryEdge, options: Partial<NodeAgentOptions> = {}) =>
  Effect.gen(function* () {
    const agent = yield* makeNodeAgent({
      dial: edge.dial,
      token: Redacted.make("secret-token"),
      adapters: [words],
      agentName: "test-node",
      agentVersion: "1.2.3",
      ...options
    })
    const fiber = yield* Effect.forkScoped(agent.run)
    return { agent, fiber }
  })

describe("registration", () => {
  it.effect("says who it is, applies the configuration and runs what it is asked for", () =>
    Effect.gen(function* () {
      const edge = memoryEdge()
      yield* start(edge)
      const link = yield* edge.link
      const request = yield* link.accept({ config })
      assert.strictEqual(request.token, "secret-token")
      assert.strictEqual(request.bootId.length, 16)
      assert.deepStrictEqual(request.adapterKinds, ["words"])
      const status = yield* link.ready
      assert.strictEqual(status.configRevision, "r1")
      assert.deepStrictEqual(
        status.adapters.map(({ name, targets }) => [name, targets.map((target) => target.name)]),
        [["w", ["t"]]]
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
})
void [RejectCode, Fiber, TestClock]
