// A paced answer of a given length: what a model's stream looks like from outside.

import { textDelta } from "@iop/node-sdk/textDelta"
import { answer } from "./answer.ts"
import type { Script } from "./Script.ts"

const WORDS =
  "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua".split(
    " "
  )

/** The most tokens that fit into memory as one answer. */
const MAX_TOKENS = 1_000_000

/** Parameters: `tokens` (64), `interval_ms` (20), `delay_ms` (0). One word per token. */
export const lorem: Script = {
  name: "lorem",
  capabilities: ["chat", "completion"],
  play: (scriptRun) => {
    const tokens = scriptRun.parameters.count("tokens", 64, MAX_TOKENS)
    const deltas = Array.from({ length: tokens }, (_, index) =>
      textDelta(`${index === 0 ? "" : " "}${scriptRun.random.pick(WORDS)}`)
    )
    return answer(scriptRun, deltas, { intervalMs: 20 })
  }
}
