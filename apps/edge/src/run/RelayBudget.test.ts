import { assert, it } from "@effect/vitest"
import { describe } from "vitest"
import { RelayBudget } from "./RelayBudget.ts"

const KIB = 1024
const MIB = 1024 * KIB

describe("the budget of all relays", () => {
  const budget = (bytes: number, running: () => number) =>
    new RelayBudget(bytes, { logBytes: MIB, consumerMs: 30_000 }, 256 * KIB, running)

  it("gives each run its whole log while there is room, then an even share, and never less than the least", () => {
    let running = 0
    const { limits } = budget(256 * MIB, () => running)
    const shares = [0, 1, 64, 128, 1024, 100_000].map((runs) => {
      running = runs
      return limits.logBytes / KIB
    })
    assert.deepStrictEqual(shares, [1024, 1024, 1024, 512, 64, 32])
    assert.strictEqual(limits.consumerMs, 30_000)
  })

  it("leaves a log that is configured smaller than the least as it is", () => {
    const small = new RelayBudget(4 * MIB, { logBytes: 16 * KIB, consumerMs: 1 }, 4 * KIB, () => 1000)
    assert.strictEqual(small.limits.logBytes, 16 * KIB)
  })

  it("RS6 takes only as many runs as fit with their windows", () => {
    let running = 0
    const { maxRuns } = budget(256 * MIB, () => running)
    assert.strictEqual(maxRuns, 568)
    const other = budget(256 * MIB, () => running)
    running = maxRuns - 1
    assert.isFalse(other.full)
    running = maxRuns
    assert.isTrue(other.full)
  })
})
