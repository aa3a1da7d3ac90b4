import { assert, describe, it } from "@effect/vitest"
import { redialDelay } from "./redialDelay.ts"

const wait = (fields: Partial<Parameters<typeof redialDelay>[0]>) =>
  redialDelay({ failures: 0, permanent: false, retryAfterMs: 0, random: 1, ...fields })

describe("the time until the next dial", () => {
  it("LK9 has a ceiling that doubles from 1 s to 30 s", () => {
    assert.deepStrictEqual(
      [0, 1, 2, 3, 4, 5, 6, 1_000].map((failures) => wait({ failures })),
      [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]
    )
  })

  it("LK6 is spread evenly from 0 on, so that nodes don't come back in waves", () => {
    assert.deepStrictEqual(
      [0, 0.25, 0.5].map((random) => wait({ failures: 5, random })),
      [0, 7_500, 15_000]
    )
  })

  it("RG12 does not undercut what the edge says, and spreads above it", () => {
    assert.strictEqual(wait({ retryAfterMs: 10_000, random: 0 }), 10_000)
    assert.strictEqual(wait({ retryAfterMs: 10_000, random: 0.5 }), 10_500)
  })

  it("RG3 is 30 to 60 s after a permanent rejection", () => {
    assert.deepStrictEqual(
      [0, 1].map((random) => wait({ permanent: true, random })),
      [30_000, 60_000]
    )
    assert.strictEqual(wait({ permanent: true, retryAfterMs: 90_000, random: 0 }), 90_000)
  })
})
