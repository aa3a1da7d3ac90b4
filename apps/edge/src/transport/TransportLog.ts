// Log lines from plain callbacks. Facts about nodes are written one by one; noise that strangers can make is limited
// by kind, and what was left out is told with a count.
import { Cause, Effect } from "effect"
import type { Timers } from "../node/Timers.ts"

export type LogFields = Readonly<Record<string, string | number | boolean>>
export type LogLevel = "debug" | "info" | "warn" | "error"

/** What can happen again and again by the will of others. */
export type NoiseKind =
  | "connection"
  | "refused"
  | "rejected"
  | "protocol_error"
  | "stray_event"
  | "ignored"
  | "tls"
  | "accept"

export interface TransportLog {
  readonly write: (level: LogLevel, message: string, fields: LogFields) => void
  /** A fault of the edge itself. */
  readonly fault: (message: string, cause: unknown, fields: LogFields) => void
  /** At most `NOISE_PER_WINDOW` lines of the kind in a window, then one that counts the rest. */
  readonly noise: (kind: NoiseKind, level: LogLevel, message: string, fields: LogFields) => void
}

const WINDOW_MS = 5000
/** Eight kinds at ten lines in five seconds stay below twenty lines a second. */
const NOISE_PER_WINDOW = 10

interface Noise {
  lines: number
  leftOut: number
}

/** Writes with the loggers, levels and annotations of the effect that made it. */
export const makeTransportLog = (timers: Timers["Service"]): Effect.Effect<TransportLog> =>
  Effect.map(Effect.context<never>(), (context) => {
    const run = Effect.runSyncWith(context)
    const write: TransportLog["write"] = (level, message, fields) => {
      // A logger that fails must not end a link.
      run(Effect.ignoreCause(atLevel(level, message, fields)))
    }
    const kinds = new Map<NoiseKind, Noise>()
    return {
      write,
      fault: (message, cause, fields) => {
        run(Effect.ignoreCause(Effect.logError(message, fields, Cause.die(cause))))
      },
      noise: (kind, level, message, fields) => {
        let noise = kinds.get(kind)
        if (noise === undefined) {
          const opened: Noise = { lines: 0, leftOut: 0 }
          noise = opened
          kinds.set(kind, opened)
          timers.after(WINDOW_MS, () => {
            kinds.delete(kind)
            if (opened.leftOut > 0) {
              write("warn", "log lines left out", { kind, leftOut: opened.leftOut, withinMs: WINDOW_MS })
            }
          })
        }
        noise.lines += 1
        if (noise.lines <= NOISE_PER_WINDOW) write(level, message, fields)
        else noise.leftOut += 1
      }
    }
  })

const atLevel = (level: LogLevel, message: string, fields: LogFields): Effect.Effect<void> => {
  switch (level) {
    case "debug":
      return Effect.logDebug(message, fields)
    case "info":
      return Effect.logInfo(message, fields)
    case "warn":
      return Effect.logWarning(message, fields)
    case "error":
      return Effect.logError(message, fields)
  }
}
