// Text that careless code breaks: Korean, emoji of several code points, combining marks, both writing directions.

import { textDelta } from "@iop/node-sdk/textDelta"
import { answer, cutText } from "./answer.ts"
import type { Script } from "./Script.ts"

/** What the script says, whatever it is asked. */
export const UNICODE_TEXT =
  "안녕하세요, 세계! 👨‍👩‍👧‍👦 가족 🇰🇷 👍🏽 e\u0301 ﷽ שלום \u200fعربي\u200e 𝒳𝓎𝓏 漢字 \u0000 ￿ \u2028 ‟end”"

/** Parameters: `interval_ms` (0), `delay_ms` (0), `times` (1) how often the text is said. */
export const unicode: Script = {
  name: "unicode",
  capabilities: ["chat", "completion"],
  play: (scriptRun) => {
    const times = scriptRun.parameters.count("times", 1, 10_000)
    // Pieces of one or two code points, so that families and flags come in parts.
    const pieces = cutText(UNICODE_TEXT.repeat(times), scriptRun.random, 2)
    return answer(
      scriptRun,
      pieces.map((piece) => textDelta(piece))
    )
  }
}
