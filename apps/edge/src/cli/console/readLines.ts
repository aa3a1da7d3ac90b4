// The lines of a pipe. Only a line feed ends one: node:readline also stops at U+2028 and U+2029, which may stand in a
// prompt.
import type { Readable } from "node:stream"

/** The lines as they come, without their ends (LF or CRLF); the last may lack one. Ends when the input is destroyed. */
export async function* readLines(input: Readable): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let rest = ""
  try {
    for await (const chunk of input) {
      const lines = (
        rest + (typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true }))
      ).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) yield withoutReturn(line)
    }
  } catch (error) {
    if (!input.destroyed) throw error
    return
  }
  rest += decoder.decode()
  if (rest !== "") yield withoutReturn(rest)
}

const withoutReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line)
