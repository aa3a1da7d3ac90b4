// The monotonic clock and its alarms for plain code. They go through Effect's Clock, so that a test with a virtual
// clock moves every duration and lease of the edge.
import { Clock, Context, Effect, FiberSet, Layer } from "effect"

export class Timers extends Context.Service<
  Timers,
  {
    /** Milliseconds on the monotonic clock; only differences mean anything. */
    readonly now: () => number
    /** Calls back once after `ms`; the returned function takes it back. */
    readonly after: (ms: number, callback: () => void) => () => void
  }
>()("@iop/edge/node/Timers") {
  static readonly layer = Layer.effect(
    Timers,
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const fork = yield* FiberSet.makeRuntime<never>()
      return {
        now: () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6,
        after: (ms, callback) => {
          const fiber = fork(Effect.andThen(Effect.sleep(ms), Effect.sync(callback)))
          return () => fiber.interruptUnsafe()
        }
      }
    })
  )
}
