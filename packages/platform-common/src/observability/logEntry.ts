// A log entry as plain fields, whatever was logged: bounded in depth, number and size, every text made harmless. Both
// formats are written from it, so that neither can be broken by what a stranger sent.

import { Cause, Duration, Redacted } from "effect"
import { boundedText } from "./sanitize.ts"

/** The largest text of one field, in characters. */
export const MAX_FIELD_CHARS = 4096
/** All texts of one entry together; what comes after is left out. */
export const MAX_ENTRY_CHARS = 32 * 1024
const MAX_KEY_CHARS = 64
const MAX_FIELDS = 64
const MAX_ITEMS = 32
const MAX_DEPTH = 4

export type FieldValue =
  | string
  | number
  | boolean
  | null
  | ReadonlyArray<FieldValue>
  | { readonly [key: string]: FieldValue }

export interface LogEntry {
  readonly time: Date
  /** Lower case: trace, debug, info, warn, error, fatal. */
  readonly level: string
  readonly message: string
  readonly fields: Readonly<Record<string, FieldValue>>
}

/** What a logger gets. */
export interface LogInput {
  readonly time: Date
  readonly level: string
  /** What was logged, in order: texts become the message, maps become fields. */
  readonly parts: ReadonlyArray<unknown>
  readonly annotations: Readonly<Record<string, unknown>>
  /** Running spans with their age in milliseconds. */
  readonly spans: ReadonlyArray<readonly [label: string, ms: number]>
  readonly cause: Cause.Cause<unknown>
}

interface Budget {
  left: number
}

/** Keys that the formats use themselves. */
const reserved: ReadonlySet<string> = new Set(["time", "level", "message"])

/** The entry of what was logged. Fields that are undefined are left out. Never throws. */
export const logEntry = (input: LogInput): LogEntry => {
  const budget: Budget = { left: MAX_ENTRY_CHARS }
  const words: Array<string> = []
  const fields: Record<string, FieldValue> = Object.create(null)
  let count = 0
  const put = (key: string, value: unknown) => {
    if (value === undefined || count >= MAX_FIELDS) return
    count += 1
    const name = boundedText(key, MAX_KEY_CHARS)
    fields[reserved.has(name) ? `_${name}` : name] = clean(value, 0, budget)
  }
  for (const part of input.parts) {
    if (typeof part === "string") words.push(text(part, budget))
    else if (isPlainMap(part)) for (const [key, value] of entriesOf(part)) put(key, value)
    else if (part instanceof Error) put("error", part)
    else words.push(inline(clean(part, 0, budget)))
  }
  for (const [key, value] of Object.entries(input.annotations)) put(key, value)
  for (const [label, ms] of input.spans) put(`span_${label}_ms`, ms)
  if (input.cause.reasons.length > 0) put("cause", causeText(input.cause))
  const message = boundedText(words.join(" "), MAX_FIELD_CHARS)
  return { time: input.time, level: input.level.toLowerCase(), message, fields }
}

/** An expected failure is its message; a defect has its stack too, since nobody expected it. */
const causeText = (cause: Cause.Cause<unknown>): string =>
  cause.reasons
    .map((reason) => {
      if (Cause.isInterruptReason(reason)) return "interrupted"
      if (Cause.isFailReason(reason)) return errorText(reason.error)
      const { defect } = reason
      return defect instanceof Error ? (defect.stack ?? errorText(defect)) : errorText(defect)
    })
    .join("; ")

const errorText = (error: unknown): string => {
  if (!(error instanceof Error))
    return typeof error === "string" ? error : inline(clean(error, 0, { left: MAX_FIELD_CHARS }))
  return error.message === "" ? error.name : `${error.name}: ${error.message}`
}

/** A bounded text, charged to the entry. */
const text = (value: string, budget: Budget): string => {
  const bounded = boundedText(value, Math.min(MAX_FIELD_CHARS, Math.max(budget.left, 0)))
  budget.left -= bounded.length
  return bounded
}

const isPlainMap = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== "object" || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Entries of a map; a getter that throws does not stop the log. */
const entriesOf = (value: object): ReadonlyArray<readonly [string, unknown]> =>
  Object.keys(value)
    .slice(0, MAX_FIELDS)
    .map((key) => {
      try {
        return [key, (value as Record<string, unknown>)[key]] as const
      } catch {
        return [key, "<unreadable>"] as const
      }
    })

const clean = (value: unknown, depth: number, budget: Budget): FieldValue => {
  switch (typeof value) {
    case "string":
      return text(value, budget)
    case "number":
      return Number.isFinite(value) ? value : String(value)
    case "boolean":
      return value
    case "bigint":
      return value.toString()
    case "object":
      return value === null ? null : cleanObject(value, depth, budget)
    case "undefined":
      return null
    default:
      return `<${typeof value}>`
  }
}

const cleanObject = (value: object, depth: number, budget: Budget): FieldValue => {
  if (Redacted.isRedacted(value)) return "<redacted>"
  if (Duration.isDuration(value)) return `${Duration.toMillis(value)}ms`
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "<no date>" : value.toISOString()
  if (value instanceof Error) return text(errorText(value), budget)
  if (ArrayBuffer.isView(value)) return `<${value.byteLength} bytes>`
  if (depth >= MAX_DEPTH || budget.left <= 0) return "<left out>"
  if (Array.isArray(value))
    return value.slice(0, MAX_ITEMS).map((item: unknown) => clean(item, depth + 1, budget))
  if (value instanceof Map || value instanceof Set) return `<${value.size} entries>`
  const fields: Record<string, FieldValue> = Object.create(null)
  for (const [key, inner] of entriesOf(value).slice(0, MAX_ITEMS)) {
    if (inner !== undefined) fields[boundedText(key, MAX_KEY_CHARS)] = clean(inner, depth + 1, budget)
  }
  return fields
}

/** A value within a line of text. */
export const inline = (value: FieldValue): string =>
  typeof value === "string" ? value : JSON.stringify(value)
