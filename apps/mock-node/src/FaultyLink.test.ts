// Each fault on frames, as an edge sees it.

import { assert, describe, it } from "@effect/vitest"
import { makeNodeAgent } from "@iop/node-sdk/NodeAgent"
import type { ScriptedLink } from "@iop/node-sdk/testkit/ScriptedLink"
import { memoryEdge } from "@iop/node-sdk/testkit/scriptedEdge"
import { Effect, Redacted } from "effect"
import type { Fault } from "./Fault.ts"
import { FaultyLink } from "./FaultyLink.ts"
import { mockAdapter } from "./mockAdapter.ts"

const started = Effect.gen(function* () {
  const edge = memoryEdge()
  const faults = new FaultyLink()
  const agent = yield* makeNodeAgent({
    dial: faults.wrapDialer(edge.dial),
    token: Redacted.make("t"),
    adapters: [mockAdapter()],
    agentName: "mock-node",
    agentVersion: "0"
  })
  yield* Effect.forkScoped(agent.run)
  const link = yield* edge.link
  yield* link.accept({
    config: { adapters: [{ name: "m", slots: 4, settings: { case: "mock", value: {} } }] }
  })
  yield* link.ready
  return { faults, link }
})

const count = (link: ScriptedLink, runId = "r-1") =>
  link.run({ adapter: "m", target: "count", runId, input: '{"tokens": 4}' })

/** What the edge sees of two runs, of which the fault is to hit the second. */
const seen = (fault: Fault) =>
  Effect.gen(function* () {
    const { faults, link } = yield* started
    faults.commit(fault)
    const other = count(link, "r-0")
    const run = count(link, "r-1")
    yield* other.toEnd
    assert.deepStrictEqual([other.repeated, other.violations], [[], []])
    yield* link.ping
    return { repeated: run.repeated, violations: run.violations, received: run.received.length }
  })

describe("faults of events", () => {
  const cases: ReadonlyArray<
    readonly [
      title: string,
      fault:
        | "duplicate_event"
        | "changed_event"
        | "out_of_order"
        | "gap"
        | "after_terminal"
        | "started_twice",
      seen: {
        readonly repeated: Array<number>
        readonly violations: Array<string>
        readonly received: number
      }
    ]
  > = [
    ["EV3 a delta twice", "duplicate_event", { repeated: [2], violations: [], received: 7 }],
    ["EV5 a seq with other content", "changed_event", { repeated: [2], violations: [], received: 7 }],
    ["EV4 a gap", "gap", { repeated: [], violations: ["event 3 came after event 1"], received: 6 }],
    ["EV6 started twice", "started_twice", { repeated: [2], violations: [], received: 7 }],
    [
      "EV7 something after the end",
      "after_terminal",
      { repeated: [], violations: ["delta came after completed"], received: 8 }
    ]
  ]
  for (const [title, fault, expected] of cases) {
    it.effect(title, () =>
      Effect.gen(function* () {
        assert.deepInclude(yield* seen({ fault, run: "r-1" }), expected)
      })
    )
  }

  it.effect("a delta after its successor", () =>
    Effect.gen(function* () {
      const { violations } = yield* seen({ fault: "out_of_order", run: "r-1" })
      assert.strictEqual(violations[0], "event 3 came after event 1")
    })
  )
})

describe("faults of links", () => {
  it.effect("EV1 and EV2 events of handles that are not the node's", () =>
    Effect.gen(function* () {
      const { faults, link } = yield* started
      faults.commit({ fault: "unknown_handle", times: 2 })
      faults.commit({ fault: "foreign_event", handle: 70, times: 3 })
      yield* link.ping
      assert.deepStrictEqual(link.strayEvents.toSorted(), [0xffff_ffff, 0xffff_ffff, 70, 71, 72].toSorted())
    })
  )

  it.effect("CN3 a cancel that does not reach the node", () =>
    Effect.gen(function* () {
      const { faults, link } = yield* started
      const run = link.run({ adapter: "m", target: "never", runId: "r-1" })
      faults.commit({ fault: "ignore_cancel", run: "r-1" })
      link.cancel(run)
      yield* link.ping
      assert.deepStrictEqual(run.received, [])
      link.cancel(run)
      assert.strictEqual((yield* run.toEnd)[0]?.type, "cancelled")
    })
  )

  it.effect("a cut link", () =>
    Effect.gen(function* () {
      const { faults, link } = yield* started
      faults.commit({ fault: "cut" })
      yield* link.closed
    })
  )

  it.effect("LK7 more status frames than anybody wants", () =>
    Effect.gen(function* () {
      const { faults, link } = yield* started
      faults.commit({ fault: "status_flood", times: 50 })
      yield* link.statusWhere(({ adapters }) => adapters[0]?.reason === "report 49")
    })
  )
})
