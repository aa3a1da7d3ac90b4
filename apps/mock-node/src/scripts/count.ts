// Deltas that are a function of the run's id and their number, so that loss, doubling and swapping show in the
// consumer's bytes. `countDelta` is what a test compares with.

import { textDelta } from "@iop/node-sdk/textDelta"
import { hashOf } from "../SeededRandom.ts"
import { answer } from "./answer.ts"
import type { Script } from "./Script.ts"

/** Delta `number` (from 0) of a run: its number and eight hex digits that depend on both. */
export const countDelta = (runId: string, number: number): string =>
  `${number}:${hashOf(`${runId}/${number}`).toString(16).padStart(8, "0")} `

/** Parameters: `tokens` (100), `interval_ms` (0), `delay_ms` (0). */
export const count: Script = {
  name: "count",
  capabilities: ["chat", "completion"],
  play: (scriptRun) => {
    const tokens = scriptRun.parameters.count("tokens", 100, 1_000_000)
    const { runId } = scriptRun.run
    return answer(
      scriptRun,
      Array.from({ length: tokens }, (_, number) => textDelta(countDelta(runId, number)))
    )
  }
}
