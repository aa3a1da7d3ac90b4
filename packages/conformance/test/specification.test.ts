// The kit and the specification name the same rules.
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { edgeRules } from "../src/rules/edge/edgeRules.ts"
import { nodeRules } from "../src/rules/node/nodeRules.ts"

const specified = readFileSync(new URL("../../../proto/README.md", import.meta.url), "utf8")
  .split("\n")
  .flatMap((line) => /^\| (R-[A-Z]+-\d+) \|/.exec(line)?.[1] ?? [])

test("the specification has rules with ids of their own", () => {
  expect(specified.length).toBeGreaterThan(40)
  expect(new Set(specified).size).toBe(specified.length)
})

test.each([
  ["an edge", edgeRules],
  ["a node", nodeRules]
] as const)("%s is judged by every rule of the specification, in its order", (_, rules) => {
  expect(rules.map(({ id }) => id)).toEqual(specified)
})

test("every rule is testable from one side at least, and every check has a name of its own in its rule", () => {
  for (const [at, rule] of edgeRules.entries()) {
    const other = nodeRules[at]!
    expect("checks" in rule || "checks" in other, rule.id).toBe(true)
    for (const side of [rule, other]) {
      if (!("checks" in side)) continue
      const names = side.checks.map(({ name }) => name)
      expect(names.length, side.id).toBeGreaterThan(0)
      expect(new Set(names).size, side.id).toBe(names.length)
    }
  }
})
