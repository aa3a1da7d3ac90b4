// RS7 in short: the same faults that `pnpm soak` commits for hours, for a minute.
import { expect, it } from "vitest"
import { soak } from "../soak/soak.ts"

const minutes = Number(process.env.IOP_SOAK_MINUTES ?? 1)
const seed = Number(process.env.IOP_SOAK_SEED ?? 1)
/** For what is still running when the faults are over, and the nodes that have yet to come back. */
const REST_MS = 180_000

it(
  "RS7 random faults from a seed: no event lost, doubled or swapped, every run ended once, the books balance",
  async () => {
    const result = await soak({ minutes, seed, say: () => undefined })
    console.log(
      `RS7 seed ${seed}: ${result.runs} runs, ${result.events} events, ${JSON.stringify(Object.fromEntries(result.faults))}, ` +
        `${result.peakMb.toFixed(0)} MB at most, ${result.slopeMb.toFixed(1)} MB per 10 minutes`
    )
    expect(result.findings).toEqual([])
    expect(result.runs).toBeGreaterThan(50 * minutes)
    expect(result.outcomes.get("completed") ?? 0).toBeGreaterThan(20 * minutes)
    // The faults did reach the runs.
    expect(result.faults.size).toBeGreaterThan(5)
  },
  minutes * 60_000 + REST_MS
)
