import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { Timers } from "../node/Timers.ts"
import { makeTransportLog } from "./TransportLog.ts"

it.effect("OB4 noise is limited by kind, and what was left out is counted", () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => {
    lines.push(JSON.stringify(message))
  })
  return Effect.gen(function* () {
    const log = yield* makeTransportLog(yield* Timers)
    for (let at = 0; at < 10_000; at++) log.noise("protocol_error", "warn", "broke", { at })
    log.noise("rejected", "warn", "refused", {})
    assert.lengthOf(lines, 11)
    yield* TestClock.adjust("5 seconds")
    assert.strictEqual(
      lines.at(-1),
      JSON.stringify(["log lines left out", { kind: "protocol_error", leftOut: 9990, withinMs: 5000 }])
    )
    assert.lengthOf(lines, 12)
    log.noise("protocol_error", "warn", "again", {})
    assert.lengthOf(lines, 13)
  }).pipe(Effect.provide(Layer.mergeAll(Timers.layer, Logger.layer([logger]))))
})

it.effect("a logger that fails ends nothing", () =>
  Effect.gen(function* () {
    const log = yield* makeTransportLog(yield* Timers)
    log.write("info", "fact", {})
    log.fault("fault", new Error("cause"), {})
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Timers.layer,
        Logger.layer([
          Logger.make(() => {
            throw new Error("disk full")
          })
        ])
      )
    )
  )
)
