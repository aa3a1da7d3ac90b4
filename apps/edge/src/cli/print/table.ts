// Plain tables: columns as wide as their widest cell, the last one cut so that a line fits a terminal.
import { safeLine } from "./safeText.ts"

/** What a terminal has when it does not say. */
const DEFAULT_WIDTH = 80
const GAP = "  "

/** Cuts a text to a number of characters, with an ellipsis. */
export const cut = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(1, width - 1))}…`

/** Columns of the terminal. */
export const terminalWidth = (): number => Math.max(40, process.stdout.columns ?? DEFAULT_WIDTH)

/** The rows under their headings, without a line end after the last. */
export const table = (
  headings: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  width: number = terminalWidth()
): string => {
  const lines = [headings, ...rows].map((cells) => cells.map(safeLine))
  const widths = headings.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
  return lines
    .map((cells) => {
      const line = cells.map((cell, column) =>
        column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)
      )
      return cut(line.join(GAP), width).trimEnd()
    })
    .join("\n")
}
