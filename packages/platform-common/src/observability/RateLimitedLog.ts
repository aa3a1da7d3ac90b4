// Log lines that strangers can provoke, bounded by kind: the first lines of a second are written, the rest is counted,
// and the count is told when the second is over.

import { Duration, Effect, type LogLevel, type Scope } from "effect"

export interface RateLimitedLogOptions {
  /** Lines of one key within a window. */
  readonly lines: number
  /** Default: one second. */
  readonly window?: Duration.Duration
}

export interface RateLimitedLog {
  /**
   * Logs, or counts what was left out. Keys must come from a fixed set: each has a record for the time of a window.
   * The count comes as a warning `log lines left out` with the key.
   */
  readonly log: (
    key: string,
    level: LogLevel.Severity,
    message: string,
    fields?: Readonly<Record<string, unknown>>
  ) => Effect.Effect<void>
}

interface Window {
  written: number
  leftOut: number
}

/** A limiter whose windows end with the scope, the last counts told. Costs one timer per key and window. */
export const makeRateLimitedLog = Effect.fnUntraced(function* (
  options: RateLimitedLogOptions
): Effect.fn.Return<RateLimitedLog, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const length = options.window ?? Duration.seconds(1)
  const windows = new Map<string, Window>()
  const tell = (key: string, window: Window) =>
    window.leftOut === 0
      ? Effect.void
      : Effect.logWarning("log lines left out", {
          kind: key,
          lines: window.leftOut,
          within_ms: Duration.toMillis(length)
        })
  const close = (key: string, window: Window) =>
    Effect.suspend(() => {
      windows.delete(key)
      return tell(key, window)
    })
  yield* Effect.addFinalizer(() => Effect.forEach([...windows], ([key, window]) => close(key, window)))
  return {
    log: Effect.fnUntraced(function* (key, level, message, fields) {
      let window = windows.get(key)
      if (window === undefined) {
        window = { written: 0, leftOut: 0 }
        windows.set(key, window)
        yield* Effect.sleep(length).pipe(Effect.andThen(close(key, window)), Effect.forkIn(scope))
      }
      if (window.written >= options.lines) {
        window.leftOut += 1
        return
      }
      window.written += 1
      yield* Effect.logWithLevel(level)(message, ...(fields === undefined ? [] : [fields]))
    })
  }
})
