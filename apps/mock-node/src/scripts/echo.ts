// Answers with the prompt, in pieces that are cut anywhere between two code points.

import { textDelta } from "@iop/node-sdk/textDelta"
import { answer, cutText } from "./answer.ts"
import type { Script } from "./Script.ts"

/** Parameters: `interval_ms` (0), `delay_ms` (0), `size` (8): the most code points of a piece. */
export const echo: Script = {
  name: "echo",
  capabilities: ["chat", "completion"],
  play: (scriptRun) => {
    const size = Math.max(1, scriptRun.parameters.count("size", 8, 1_000_000))
    return answer(
      scriptRun,
      cutText(scriptRun.text, scriptRun.random, size).map((piece) => textDelta(piece))
    )
  }
}
