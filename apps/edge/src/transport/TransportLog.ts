// Log lines from plain callbacks. Facts about nodes are written one by one; noise that strangers can make is limited
// by kind, and what was left out is told with a count.
import { makeRateLimitedLog } from "@iop/platform-common/observability/RateLimitedLog"
import { Cause, Duration, Effect, type Scope } from "effect"

export type LogFields = Readonly<Record<string, string | number | boolean>>
export type LogLevel = "debug" | "info" | "warn" | "error"

/** What can happen again and again by the will of others. */
export type NoiseKind =
  | "connection"
  | "refused"
  | "rejected"
  | "protocol_error"
  | "stray_event"
  | "forged_event"
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

const WINDOW = Duration.seconds(5)
/** Nine kinds at ten lines in five seconds stay below twenty lines a second. */
const NOISE_PER_WINDOW = 10

const severities: Readonly<Record<LogLevel, "Debug" | "Info" | "Warn" | "Error">> = {
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error"
}

/** Writes with the loggers, levels and annotations of the effect that made it. */
export const makeTransportLog: Effect.Effect<TransportLog, never, Scope.Scope> = Effect.gen(function* () {
  const run = Effect.runSyncWith(yield* Effect.context<never>())
  const limited = yield* makeRateLimitedLog({ lines: NOISE_PER_WINDOW, window: WINDOW })
  // A logger that fails must not end a link.
  const safely = (line: Effect.Effect<void>) => run(Effect.ignoreCause(line))
  return {
    write: (level, message, fields) => safely(Effect.logWithLevel(severities[level])(message, fields)),
    fault: (message, cause, fields) => safely(Effect.logError(message, fields, Cause.die(cause))),
    noise: (kind, level, message, fields) => safely(limited.log(kind, severities[level], message, fields))
  }
})
