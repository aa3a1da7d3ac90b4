// The log of a process: one line per entry, always on stderr, JSON for programs and plain text for a person at a
// terminal. Replaces all loggers of the effects below it.

import { type Cause, Layer, Logger, type LogLevel, References } from "effect"
import { formatJsonLine, formatPrettyLine } from "./formatLogLine.ts"
import { type LogStream, makeLogSink } from "./LogSink.ts"
import { type LogEntry, logEntry } from "./logEntry.ts"

export interface LoggingOptions {
  /** The least important entries that are written. */
  readonly level: "trace" | "debug" | "info" | "warn" | "error"
  /** `auto`: pretty where the stream is a terminal. */
  readonly format: "auto" | "json" | "pretty"
  /** Default: process.stderr. */
  readonly stream?: LogStream & { readonly isTTY?: boolean }
}

const levels: Readonly<Record<LoggingOptions["level"], LogLevel.LogLevel>> = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error"
}

/** Logging as configured. A stream that is closed, full or slow loses lines and disturbs nothing else. */
export const loggingLayer = (options: LoggingOptions): Layer.Layer<never> => {
  const stream = options.stream ?? process.stderr
  const terminal = stream.isTTY === true
  const pretty = options.format === "pretty" || (options.format === "auto" && terminal)
  const colour = pretty && terminal && (process.env.NO_COLOR ?? "") === ""
  const format = pretty ? (entry: LogEntry) => formatPrettyLine(entry, colour) : formatJsonLine
  const sink = makeLogSink(stream, (lines) =>
    format({ time: new Date(), level: "warn", message: "log lines left out", fields: { lines } })
  )
  const logger = Logger.make<unknown, void>(({ cause, date, fiber, logLevel, message }) => {
    sink.write(format(toEntry(cause, date, logLevel, message, fiber)))
  })
  return Layer.mergeAll(
    Logger.layer([logger]),
    Layer.succeed(References.MinimumLogLevel, levels[options.level])
  )
}

const toEntry = (
  cause: Cause.Cause<unknown>,
  time: Date,
  level: LogLevel.LogLevel,
  message: unknown,
  fiber: Logger.Options<unknown>["fiber"]
): LogEntry => {
  const now = time.getTime()
  return logEntry({
    time,
    level,
    parts: Array.isArray(message) ? message : [message],
    annotations: fiber.getRef(References.CurrentLogAnnotations),
    spans: fiber.getRef(References.CurrentLogSpans).map(([label, start]) => [label, now - start] as const),
    cause
  })
}
