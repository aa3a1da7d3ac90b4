// Takes its time before it starts, as a model does that has to be loaded, or before its first token, as one does
// that reads a long prompt.

import { Effect, Stream } from "effect"
import { MAX_MS } from "./answer.ts"
import { echo } from "./echo.ts"
import type { Script } from "./Script.ts"

/** Parameters: `start_ms` (3,000) before `started`, `delay_ms` (0) before the first delta, and those of echo. */
export const slowStart: Script = {
  name: "slow-start",
  capabilities: ["chat", "completion"],
  play: (scriptRun) => {
    const startMs = scriptRun.parameters.count("start_ms", 3_000, MAX_MS)
    return Stream.drain(Stream.fromEffect(Effect.sleep(startMs))).pipe(Stream.concat(echo.play(scriptRun)))
  }
}
