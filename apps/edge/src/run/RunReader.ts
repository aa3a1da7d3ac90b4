// How anybody outside reads a run: plain and pulled for the paths that write many events, or as a Stream.
import { Array as Arr, Cause, Effect, Stream } from "effect"
import type { RelayedEvent } from "./RunEvent.ts"
import { type RunFailure, RunRefused } from "./RunFailure.ts"

/** A reader of one run. Plain, for the paths that write many events; `events` is the same as a Stream. */
export interface RunReader {
  /** Takes what is there, at most about `maxBytes` of it (64 KiB by default); empty when nothing is. */
  readonly take: (maxBytes?: number) => ReadonlyArray<RelayedEvent>
  /** Calls back once when `take` has something, or when the reader is over; at once if that is so now. */
  readonly onReady: (callback: () => void) => void
  /** No more events will come: the terminal one was taken, or the reader itself was ended (see `failure`). */
  readonly done: () => boolean
  /** Set when this reader alone was ended: it fell behind (slow_consumer). */
  readonly failure: () => RunFailure | undefined
  /** Leaves. A run that is not detached is cancelled when its owner leaves. */
  readonly close: () => void
}

/** The events of a reader as a stream: one pull takes all that is there. */
export const readerEvents = (reader: RunReader): Stream.Stream<RelayedEvent, RunRefused> =>
  Stream.fromPull(Effect.succeed(pullReader(reader))).pipe(Stream.ensuring(Effect.sync(reader.close)))

const pullReader = (reader: RunReader) =>
  Effect.gen(function* () {
    while (true) {
      const events = reader.take()
      const failure = reader.failure()
      if (failure !== undefined) return yield* new RunRefused({ failure })
      if (Arr.isReadonlyArrayNonEmpty(events)) return events
      if (reader.done()) return yield* Cause.done()
      yield* Effect.callback<void>((resume) => reader.onReady(() => resume(Effect.void)))
    }
  })
