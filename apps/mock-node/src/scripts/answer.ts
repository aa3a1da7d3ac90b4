// The shape that most scripts share: pieces of output at a pace, then the counts, then the end.

import type { DeltaEvent, FinishReason, NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { Effect, Stream } from "effect"
import type { ScriptRun } from "./Script.ts"

/** The longest interval and delay that a parameter may ask for, in milliseconds: one day. */
export const MAX_MS = 86_400_000

/**
 * A whole answer. `interval_ms` of the run's parameters is the time before each delta (default `intervalMs`, 0: all
 * at once), `delay_ms` the time before the first.
 */
export const answer = (
  { parameters, text }: ScriptRun,
  deltas: ReadonlyArray<DeltaEvent>,
  options: { readonly intervalMs?: number; readonly finishReason?: FinishReason } = {}
): Stream.Stream<NodeRunEvent> => {
  const intervalMs = parameters.count("interval_ms", options.intervalMs ?? 0, MAX_MS)
  const delayMs = parameters.count("delay_ms", 0, MAX_MS)
  const paced: Stream.Stream<NodeRunEvent> =
    intervalMs === 0
      ? Stream.fromArray<NodeRunEvent>(deltas)
      : Stream.fromArray(deltas).pipe(
          Stream.rechunk(1),
          Stream.mapEffect((delta) => Effect.as(Effect.sleep(intervalMs), delta))
        )
  return Stream.make<[NodeRunEvent]>({ type: "started" }).pipe(
    Stream.concat(Stream.drain(Stream.fromEffect(Effect.sleep(delayMs)))),
    Stream.concat(paced),
    Stream.concat(Stream.fromArray(ending(text, deltas.length, options.finishReason ?? "stop")))
  )
}

/** The counts and the end: words of the prompt in, deltas out. */
export const ending = (
  prompt: string,
  outputTokens: number,
  finishReason: FinishReason
): ReadonlyArray<NodeRunEvent> => {
  const usage = { inputTokens: countWords(prompt), outputTokens }
  return [
    { type: "usage", usage },
    { type: "completed", finishReason, usage }
  ]
}

/** Words, as a stand-in for tokens. */
export const countWords = (text: string): number => text.split(/\s+/u).filter((word) => word !== "").length

/** The text in pieces of 1 to `longest` code points, cut where the randomness says and never inside one. */
export const cutText = (
  text: string,
  random: { readonly between: (from: number, to: number) => number },
  longest = 8
): ReadonlyArray<string> => {
  const points = Array.from(text.toWellFormed())
  const pieces: Array<string> = []
  for (let start = 0; start < points.length; ) {
    const length = random.between(1, longest)
    pieces.push(points.slice(start, start + length).join(""))
    start += length
  }
  return pieces
}
