// The events that almost every adapter yields, in one word each.

import type { NodeRunEvent, TextDelta } from "@iop/platform-common/protocol/RunEvent"

/** A piece of the answer. `choice` is which of several answers it belongs to, from 0. */
export const textDelta = (text: string, choice = 0): TextDelta => ({
  type: "delta",
  kind: "text",
  choice,
  text
})

/** A piece of the thinking before the answer. */
export const reasoningDelta = (text: string, choice = 0): TextDelta => ({
  type: "delta",
  kind: "reasoning",
  choice,
  text
})

/** The good end of a run that was not cut short. */
export const completed: NodeRunEvent = { type: "completed", finishReason: "stop" }
