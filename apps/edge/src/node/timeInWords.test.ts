import { assert, it } from "@effect/vitest"
import { timeInWords } from "./timeInWords.ts"

it("a stretch of time is told in its two largest units", () => {
  assert.deepStrictEqual(
    [-1, 400, 12_000, 119_000, 120_000, 3_600_000, 7_500_000, 49 * 3_600_000].map(timeInWords),
    ["0 s", "0 s", "12 s", "119 s", "2 min", "60 min", "2 h 5 min", "2 d 1 h"]
  )
})
