// What a run of the fake node's target `count` must have answered. The text is a function of the run's id and the
// event's number, so that anything lost, doubled or swapped, within a run or between two, shows in the bytes.
import { countDelta } from "mock-node/scripts/count"

/** A prompt for the target. */
export const countPrompt = (tokens: number, more: Readonly<Record<string, number>> = {}): string =>
  `count ${JSON.stringify({ tokens, ...more })}`

/** The whole answer of a run. */
export const countText = (runId: string, tokens: number): string =>
  Array.from({ length: tokens }, (_, number) => countDelta(runId, number)).join("")
