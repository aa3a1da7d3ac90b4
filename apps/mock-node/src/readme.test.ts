// The README lists what there is.

import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { Result } from "effect"
import { decodeFault } from "./Fault.ts"
import { mockScripts } from "./mockScripts.ts"

const readme = readFileSync(fileURLToPath(new URL("../README.md", import.meta.url)), "utf8")

it("the README has a row for each script, and no other", () => {
  const rows = Array.from(readme.matchAll(/^\| `([a-z-]+)` \|/gmu), ([, name]) => name)
  assert.deepStrictEqual(rows, [
    "echo",
    "lorem",
    "think",
    "tools",
    "count",
    "unicode",
    "embed",
    "slow-start",
    "fail-first",
    "fail-mid",
    "never",
    "flood"
  ])
  assert.deepStrictEqual(rows, [...mockScripts.keys()])
})

it("every fault in the README is one", () => {
  const faults = Array.from(readme.matchAll(/^\| `(\{.*\})` \|/gmu), ([, json]): unknown => JSON.parse(json!))
  assert.strictEqual(faults.length, 14)
  for (const fault of faults) assert.isTrue(Result.isSuccess(decodeFault(fault)), JSON.stringify(fault))
})
