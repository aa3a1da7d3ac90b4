import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Counter, register } from "prom-client"
import { PromRegistry } from "./PromRegistry.ts"

describe("PromRegistry", () => {
  it.effect("renders the process's figures under its prefix and what was registered", () =>
    Effect.gen(function* () {
      const { registry, render } = yield* PromRegistry
      const runs = new Counter({ name: "iop_test_runs_total", help: "Runs.", registers: [registry] })
      runs.inc(3)
      const { body, contentType } = yield* render
      assert.match(contentType, /^text\/plain/)
      assert.include(body, "# HELP iop_test_runs_total Runs.\n")
      assert.include(body, "iop_test_runs_total 3\n")
      assert.match(body, /^iop_test_process_cpu_seconds_total \d/m)
      assert.match(body, /^iop_test_nodejs_eventloop_lag_seconds \d/m)
      for (const line of body.split("\n").filter((text) => text !== ""))
        assert.match(line, /^(# (HELP|TYPE) )?iop_test_/)
    }).pipe(Effect.provide(PromRegistry.layer("iop_test_")))
  )

  it.effect("two in one process do not meet, and the global registry stays empty", () =>
    Effect.gen(function* () {
      const page = Effect.gen(function* () {
        const { registry, render } = yield* PromRegistry
        new Counter({ name: "iop_same_total", help: "x", registers: [registry] }).inc()
        return (yield* render).body
      })
      const pages = yield* Effect.all([
        Effect.provide(page, PromRegistry.layer("a_")),
        Effect.provide(page, PromRegistry.layer("b_"))
      ])
      for (const body of pages) assert.include(body, "iop_same_total 1\n")
      assert.strictEqual(yield* Effect.promise(() => register.metrics()), "\n")
    })
  )
})
