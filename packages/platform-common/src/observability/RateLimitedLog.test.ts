import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { makeRateLimitedLog } from "./RateLimitedLog.ts"

const recording = () => {
  const entries: Array<ReadonlyArray<unknown>> = []
  const logger = Logger.make<unknown, void>(({ message }) => {
    entries.push(Array.isArray(message) ? message : [message])
  })
  return { entries, layer: Logger.layer([logger]) }
}

describe("RateLimitedLog", () => {
  it.effect("OB4 10,000 errors in a second are ten lines and a count", () => {
    const { entries, layer } = recording()
    return Effect.gen(function* () {
      const { log } = yield* makeRateLimitedLog({ lines: 10 })
      for (let index = 0; index < 10_000; index++)
        yield* log("protocol_error", "Warn", "bad frame", { index })
      assert.strictEqual(entries.length, 10)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(entries.length, 11)
      assert.deepStrictEqual(entries[10], [
        "log lines left out",
        { kind: "protocol_error", lines: 9990, within_ms: 1000 }
      ])
      yield* log("protocol_error", "Warn", "bad frame")
      assert.deepStrictEqual(entries[11], ["bad frame"])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(entries.length, 12)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("OB4 a flood of one kind does not hide another", () => {
    const { entries, layer } = recording()
    return Effect.gen(function* () {
      const { log } = yield* makeRateLimitedLog({ lines: 1 })
      yield* log("a", "Info", "a")
      yield* log("a", "Info", "a")
      yield* log("b", "Info", "b")
      assert.deepStrictEqual(entries, [["a"], ["b"]])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("OB4 the last count is told at the end", () => {
    const { entries, layer } = recording()
    return Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { log } = yield* makeRateLimitedLog({ lines: 1 })
          for (let index = 0; index < 5; index++) yield* log("a", "Info", "a")
        })
      )
      assert.deepStrictEqual(entries, [
        ["a"],
        ["log lines left out", { kind: "a", lines: 4, within_ms: 1000 }]
      ])
    }).pipe(Effect.provide(layer))
  })
})
