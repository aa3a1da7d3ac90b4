// Vectors that are a function of the text: equal texts have equal vectors, all of length 1.

import { AdapterFailure } from "@iop/node-sdk/Adapter"
import type { EmbedItem } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import type { EmbeddingDelta, NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { Stream } from "effect"
import { SeededRandom } from "../SeededRandom.ts"
import { countWords } from "./answer.ts"
import type { Script } from "./Script.ts"

/** The longest vector that the protocol carries. */
const MAX_DIMENSIONS = 65_536

/** Parameters: `dimensions` (16), unless the input says how many. */
export const embed: Script = {
  name: "embed",
  capabilities: ["embedding"],
  play: ({ parameters, run, text }) => {
    const { kind } = run.input
    if (kind.case !== "embed") {
      throw new AdapterFailure({
        code: "invalid_input",
        message: `target ${run.target} makes vectors of texts; it does not answer prompts`,
        retryable: false
      })
    }
    const dimensions = kind.value.dimensions ?? parameters.count("dimensions", 16, MAX_DIMENSIONS)
    if (dimensions < 1 || dimensions > MAX_DIMENSIONS) {
      throw new AdapterFailure({
        code: "invalid_input",
        message: `dimensions must be from 1 to ${MAX_DIMENSIONS}`,
        retryable: false
      })
    }
    const usage = { inputTokens: countWords(text) }
    return Stream.fromArray<NodeRunEvent>([
      ...kind.value.items.map(
        (item, index): EmbeddingDelta => ({
          type: "delta",
          kind: "embedding",
          choice: 0,
          index,
          values: vectorOf(textOf(item), dimensions)
        })
      ),
      { type: "usage", usage },
      { type: "completed", finishReason: "stop", usage }
    ])
  }
}

/** The vector of a text: single-precision numbers, of length 1. */
export const vectorOf = (text: string, dimensions: number): ReadonlyArray<number> => {
  const random = new SeededRandom(text)
  const raw = Array.from({ length: dimensions }, () => random.next() * 2 - 1)
  const length = Math.hypot(...raw) || 1
  return raw.map((value) => Math.fround(value / length))
}

const textOf = ({ content }: EmbedItem): string => {
  switch (content.case) {
    case "text":
      return content.value
    case "tokens":
      return content.value.tokens.join(" ")
    case undefined:
      return ""
  }
}
