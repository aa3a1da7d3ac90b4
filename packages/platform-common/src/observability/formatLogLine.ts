// The two forms of a log entry: a JSON line for programs, a plain line for a person at a terminal. Always one line.

import { inline, type LogEntry } from "./logEntry.ts"

/** One JSON object: time, level, message, then the fields. */
export const formatJsonLine = (entry: LogEntry): string =>
  JSON.stringify({
    time: entry.time.toISOString(),
    level: entry.level,
    message: entry.message,
    ...entry.fields
  })

const colours: Readonly<Record<string, number>> = {
  error: 31,
  fatal: 31,
  warn: 33,
  info: 32,
  debug: 36,
  trace: 90
}

/** `12:34:56.789 INFO  message key=value`; values with spaces or quotes are quoted. Times are local. */
export const formatPrettyLine = (entry: LogEntry, colour: boolean): string => {
  const { time } = entry
  const two = (value: number) => String(value).padStart(2, "0")
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}`
  const paint = (code: number, text: string) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text)
  const level = paint(colours[entry.level] ?? 0, entry.level.toUpperCase().padEnd(5))
  const fields = Object.entries(entry.fields).map(([key, value]) => {
    const text = inline(value)
    const plain = text !== "" && !/[\s"=]/.test(text)
    return `${paint(90, `${key}=`)}${plain ? text : JSON.stringify(text)}`
  })
  return [paint(90, clock), level, entry.message, ...fields].join(" ")
}
