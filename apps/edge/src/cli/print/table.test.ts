import { assert, it } from "@effect/vitest"
import { table } from "./table.ts"

it("columns are as wide as their widest cell, and lines as long as the terminal", () => {
  assert.strictEqual(
    table(
      ["NODE", "WHAT"],
      [
        ["a", "short"],
        ["longer", "x".repeat(60)]
      ],
      40
    ),
    ["NODE    WHAT", "a       short", `longer  ${"x".repeat(31)}…`].join("\n")
  )
})

it("OB1 a cell can't break out of its line", () => {
  assert.strictEqual(table(["A", "B"], [["x\ny", "\u001b[2J"]], 40), "A    B\nx y  ␛[2J")
})
