import { assert, it } from "@effect/vitest"
import { counted, durationInWords, labelsInWords } from "./inWords.ts"

it("durations are said as people say them", () => {
  const cases: ReadonlyArray<[number, string]> = [
    [0, "0 ms"],
    [0.25, "0.25 ms"],
    [340.4, "340 ms"],
    [999.4, "999 ms"],
    [999.9, "1.0 s"],
    [1234, "1.2 s"],
    [59_940, "59.9 s"],
    [59_960, "1 min 0 s"],
    [125_000, "2 min 5 s"],
    [3_600_000, "1 h 0 min"],
    [11_045_000, "3 h 4 min"]
  ]
  for (const [ms, words] of cases) assert.strictEqual(durationInWords(ms), words)
})

it("counts have their plural, labels their values", () => {
  assert.deepStrictEqual(
    [counted(0, "run"), counted(1, "run"), counted(2, "run")],
    ["0 runs", "1 run", "2 runs"]
  )
  assert.strictEqual(labelsInWords({ gpu: "rtx", tier: "fast" }), "gpu=rtx tier=fast")
})
