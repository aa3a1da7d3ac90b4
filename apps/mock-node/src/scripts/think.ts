// Thinks aloud before it answers.

import { reasoningDelta, textDelta } from "@iop/node-sdk/textDelta"
import { answer, cutText } from "./answer.ts"
import type { Script } from "./Script.ts"

/** Parameters: `interval_ms` (0), `delay_ms` (0). */
export const think: Script = {
  name: "think",
  capabilities: ["chat", "reasoning"],
  play: (scriptRun) => {
    const { random, text } = scriptRun
    const thought = `The prompt has ${Array.from(text).length} characters. I shall say it again.`
    return answer(scriptRun, [
      ...cutText(thought, random).map((piece) => reasoningDelta(piece)),
      ...cutText(text, random).map((piece) => textDelta(piece))
    ])
  }
}
