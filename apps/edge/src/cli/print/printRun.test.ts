import { assert, it } from "@effect/vitest"
import { badEnd } from "./printRun.ts"

it("a run that ended badly is told once: on stderr, unless the terminal has it already", () => {
  const failed = { seq: 3, type: "failed", code: "node_lost", message: "gone", retryable: true } as const
  const cancelled = { seq: 3, type: "cancelled", reason: "asked for over HTTP" } as const
  const told = (...args: Parameters<typeof badEnd>) => {
    const end = badEnd(...args)
    return end === undefined ? undefined : [end.exitCode, end.message]
  }
  assert.deepStrictEqual(told("r1", failed, false), [1, "run r1 failed: node_lost: gone"])
  assert.deepStrictEqual(told("r1", failed, true), [1, ""])
  assert.deepStrictEqual(told("r1", cancelled, false), [1, "run r1 was cancelled: asked for over HTTP"])
  assert.deepStrictEqual(told("r1", cancelled, true), [1, ""])
  assert.isUndefined(told("r1", { seq: 3, type: "completed", finish_reason: "stop" }, false))
})
