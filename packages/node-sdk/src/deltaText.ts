// The text of a delta, whatever its kind calls it.

import type { DeltaEvent } from "@iop/platform-common/protocol/RunEvent"

/** Deltas that carry text: all but vectors. */
export type WithText = Exclude<DeltaEvent, { readonly kind: "embedding" }>

/** The text. */
export const textOf = (delta: WithText): string => (delta.kind === "tool_call" ? delta.arguments : delta.text)

/** The same delta with another text. */
export const withText = (delta: WithText, text: string): WithText =>
  delta.kind === "tool_call" ? { ...delta, arguments: text } : { ...delta, text }

/** Where the delta's text goes on: deltas of one place make one text. */
export const placeOf = (delta: DeltaEvent): string => {
  switch (delta.kind) {
    case "tool_call":
    case "embedding":
      return `${delta.kind} ${delta.choice} ${delta.index}`
    case "output":
      return `output ${delta.choice} ${delta.channel}`
    default:
      return `${delta.kind} ${delta.choice}`
  }
}

/** Whether a UTF-16 code unit is the first half of a character that has two. */
export const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
