// The alarms of the edge under supervision: heartbeats, clocks of runs and leases all hang on them, and one that dies
// in silence would leave an edge that only seems to live.
import { Effect, Layer } from "effect"
import { Timers } from "../node/Timers.ts"

/** `crash` is told what an alarm's callback threw; it ends the process. */
export const supervisedTimers = (crash: (error: unknown) => void): Layer.Layer<Timers> =>
  Layer.effect(
    Timers,
    Effect.map(Timers, (timers) => ({
      now: timers.now,
      after: (ms, callback) =>
        timers.after(ms, () => {
          try {
            callback()
          } catch (error) {
            crash(error)
          }
        })
    }))
  ).pipe(Layer.provide(Timers.layer))

/** Makes the fault an uncaught exception, which ends the process with a message. */
export const crashProcess = (error: unknown): void => {
  setImmediate(() => {
    throw error
  })
}
