// Parameters at the end of a prompt, for callers that can send nothing but text: `tell me {"tokens": 5}`.

import type { ParameterSource } from "./Parameters.ts"

/** The names that make an object at the end of a prompt parameters; any other object is part of the prompt. */
const KNOWN = new Set([
  "arguments",
  "calls",
  "delay_ms",
  "dimensions",
  "fast",
  "fault",
  "ignore_cancel",
  "interval_ms",
  "retryable",
  "seed",
  "size",
  "start",
  "start_ms",
  "times",
  "tokens",
  "tool"
])

/** The prompt without the parameters at its end, and those. */
export const promptParameters = (
  text: string
): { readonly text: string; readonly parameters: ParameterSource } => {
  const trimmed = text.trimEnd()
  if (!trimmed.endsWith("}")) return { text, parameters: {} }
  // The last opening brace from which on the rest is an object; nested ones are tried from the inside out.
  for (
    let start = trimmed.lastIndexOf("{");
    start >= 0 && trimmed.length - start <= 4_096;
    start = start === 0 ? -1 : trimmed.lastIndexOf("{", start - 1)
  ) {
    const parameters = parseObject(trimmed.slice(start))
    if (parameters !== undefined && Object.keys(parameters).every((name) => KNOWN.has(name))) {
      return { text: trimmed.slice(0, start).trimEnd(), parameters }
    }
  }
  return { text, parameters: {} }
}

const parseObject = (json: string): ParameterSource | undefined => {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === "object" && value !== null && Object.keys(value).length > 0
      ? (value as ParameterSource)
      : undefined
  } catch {
    // Not JSON: then it is text.
    return undefined
  }
}
