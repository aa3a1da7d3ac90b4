import { assert, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { makeTransportLog } from "./TransportLog.ts"

it.effect("OB4 noise is limited by kind, and what was left out is counted", () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => {
    lines.push(JSON.stringify(message))
  })
  return Effect.gen(function* () {
    const log = yield* makeTransportLog
    for (let at = 0; at < 10_000; at++) log.noise("protocol_error", "warn", "broke", { at })
    log.noise("rejected", "warn", "refused", {})
    assert.lengthOf(lines, 11)
    yield* TestClock.adjust("5 seconds")
    assert.strictEqual(
      lines.at(-1),
      JSON.stringify(["log lines left out", { kind: "protocol_error", lines: 9990, within_ms: 5000 }])
    )
    assert.lengthOf(lines, 12)
    log.noise("protocol_error", "warn", "again", {})
    assert.lengthOf(lines, 13)
  }).pipe(Effect.provide(Logger.layer([logger])))
})

it.effect("a logger that fails ends nothing", () =>
  Effect.gen(function* () {
    const log = yield* makeTransportLog
    log.write("info", "fact", {})
    log.fault("fault", new Error("cause"), {})
  }).pipe(
    Effect.provide(
      Logger.layer([
        Logger.make(() => {
          throw new Error("disk full")
        })
      ])
    )
  )
)
