// As many deltas as the run's window lets through: what shows whether a slow reader slows its own run and no other.

import { textDelta } from "@iop/node-sdk/textDelta"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { Effect, Option, Stream } from "effect"
import { ending } from "./answer.ts"
import type { Script } from "./Script.ts"

/** Deltas that are made at once; few enough for a turn of the event loop. */
const CHUNK = 64

/** Parameters: `tokens` (10,000), `size` (32) characters of each. Each delta begins with its number. */
export const flood: Script = {
  name: "flood",
  capabilities: ["chat", "completion"],
  play: ({ parameters, text }) => {
    const tokens = parameters.count("tokens", 10_000, 4_000_000_000)
    const size = parameters.count("size", 32, 16_000_000)
    const filler = "x".repeat(size)
    const delta = (number: number): NodeRunEvent => {
      const head = `${number} `
      return textDelta(head.length >= size ? head : head + filler.slice(head.length))
    }
    return Stream.paginate(0, (sent) => {
      const length = Math.min(CHUNK, tokens - sent)
      const events = Array.from({ length }, (_, index) => delta(sent + index))
      return Effect.succeed([events, sent + length < tokens ? Option.some(sent + length) : Option.none()])
    }).pipe(Stream.concat(Stream.fromArray(ending(text, tokens, "stop"))))
  }
}
