// What the service asks of the clock: counted, because an alarm per event is invisible in every other test.
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { circuitLimits, join, record, started, text } from "../../test/fakeNodes.ts"
import { limits, spec } from "../../test/runFixture.ts"
import { makeNodeRegistry } from "../node/NodeRegistry.ts"
import { makeNodeStore } from "../node/NodeStore.ts"
import { makeRunService } from "./makeRunService.ts"
import { RunObserver } from "./RunObserver.ts"
import { RunTracing } from "./RunTracing.ts"

describe("the alarms of a run", () => {
  it("are as many as its clocks, and not as many as its events", () => {
    const timers: { armed: Array<number>; now: () => number; after: (ms: number) => () => void } = {
      armed: [],
      now: () => 0,
      after: (ms) => {
        timers.armed.push(ms)
        return () => {}
      }
    }
    const store = makeNodeStore([record("a")])
    const registry = makeNodeRegistry(store, () => "rev", circuitLimits, timers.now)
    const runs = makeRunService(
      registry,
      timers,
      RunObserver.defaultValue(),
      RunTracing.defaultValue(),
      limits
    )
    const link = join(registry, "a")
    const { reader } = Effect.runSync(runs.submit(spec()))
    link.say(link.last, started)
    for (let i = 0; i < 1000; i++) {
      link.say(link.last, text("x"))
      reader.take()
    }
    const byTime = new Map<number, number>()
    for (const ms of timers.armed) byTime.set(ms, (byTime.get(ms) ?? 0) + 1)
    assert.deepStrictEqual(
      [...byTime].sort(([a], [b]) => a - b),
      [
        // Late acknowledgements, the consumer clock, first event and idle.
        [100, 1],
        [limits.relay.consumerMs, 1],
        [limits.firstEventMs, 2]
      ]
    )
  })
})
