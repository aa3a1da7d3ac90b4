import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Timers } from "../node/Timers.ts"
import { supervisedTimers } from "./supervisedTimers.ts"

it.effect("an alarm whose callback throws is told, and the other alarms go on", () => {
  const crashes: Array<unknown> = []
  return Effect.gen(function* () {
    const timers = yield* Timers
    let rang = 0
    timers.after(10, () => {
      throw new Error("broken")
    })
    timers.after(20, () => {
      rang += 1
    })
    const takenBack = timers.after(20, () => {
      rang += 10
    })
    takenBack()
    yield* Effect.yieldNow
    yield* TestClock.adjust(30)
    assert.deepStrictEqual(crashes.map(String), ["Error: broken"])
    assert.strictEqual(rang, 1)
  }).pipe(Effect.provide(supervisedTimers((error) => crashes.push(error))))
})
