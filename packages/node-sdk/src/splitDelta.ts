// Cuts a delta whose text would not fit into one frame. Backends that answer in one piece make such deltas; the
// consumer sees the same text in any case.

import type { DeltaEvent } from "@iop/platform-common/protocol/RunEvent"
import { isHighSurrogate, textOf, type WithText, withText } from "./deltaText.ts"

/** Room in a frame for everything but the text: field headers, handle, seq, a tool call's id and name. */
const FRAME_OVERHEAD = 4096
/** The most bytes that one UTF-16 code unit can become in UTF-8. */
const BYTES_PER_UNIT = 3

/**
 * The delta as one or several, each with a text that fits into a frame of `maxFrameBytes`. Cuts lie between code
 * points. What comes once (id and name of a tool call, log probabilities) stays with the first piece. A vector
 * is never cut: it comes back as it is, even if it is too large.
 */
export const splitDelta = (delta: DeltaEvent, maxFrameBytes: number): ReadonlyArray<DeltaEvent> => {
  if (delta.kind === "embedding") return [delta]
  const text = textOf(delta)
  const room = maxFrameBytes - FRAME_OVERHEAD
  const units = Math.max(2, Math.floor(room / BYTES_PER_UNIT))
  // Measured only when it may be too long: almost no delta is.
  if (text.length <= units || Buffer.byteLength(text) <= room) return [delta]
  const pieces: Array<DeltaEvent> = []
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + units)
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--
    pieces.push(piece(delta, text.slice(start, end), start === 0))
    start = end
  }
  return pieces
}

const piece = (delta: WithText, text: string, first: boolean): DeltaEvent => {
  if (first || delta.kind === "output") return withText(delta, text)
  return delta.kind === "tool_call"
    ? { type: "delta", kind: "tool_call", choice: delta.choice, index: delta.index, arguments: text }
    : { type: "delta", kind: delta.kind, choice: delta.choice, text }
}
