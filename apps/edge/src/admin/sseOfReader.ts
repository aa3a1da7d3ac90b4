// The events of a run's reader as server-sent events: one chunk of bytes for all that is there, and a comment after
// each stretch of silence so that proxies and clients know that the stream lives.
import { Effect, Option, Stream } from "effect"
import type { RelayedEvent } from "../run/RunEvent.ts"
import type { RunReader } from "../run/RunReader.ts"
import { runEventView } from "./RunEventView.ts"

const utf8 = new TextEncoder()
const comment = utf8.encode(": still there\n\n")

/** JSON has no line break of its own, so that one `data` line holds every event. */
const frame = (event: RelayedEvent): string =>
  `id: ${event.seq}\ndata: ${JSON.stringify(runEventView(event))}\n\n`

/** Leaving the stream leaves the reader. `commentMs`: milliseconds of silence before a comment. */
export const sseOfReader = (reader: RunReader, commentMs: number): Stream.Stream<Uint8Array> => {
  let over = false
  const ready = Effect.callback<void>((resume) => reader.onReady(() => resume(Effect.void)))
  const next: Effect.Effect<readonly [Uint8Array, null] | undefined> = Effect.gen(function* () {
    while (!over) {
      const events = reader.take()
      if (events.length > 0) return [utf8.encode(events.map(frame).join("")), null]
      const failure = reader.failure()
      if (failure !== undefined) {
        over = true
        const body = { error: { code: failure.code, message: failure.message } }
        return [utf8.encode(`event: error\ndata: ${JSON.stringify(body)}\n\n`), null]
      }
      if (reader.done()) break
      if (Option.isNone(yield* Effect.timeoutOption(ready, commentMs))) return [comment, null]
    }
    return undefined
  })
  return Stream.unfold(null, () => next).pipe(Stream.ensuring(Effect.sync(reader.close)))
}
