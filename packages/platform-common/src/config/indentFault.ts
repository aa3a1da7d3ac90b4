// Says of a line of broken YAML that its indentation is what is wrong, which the parser calls a missing character or a
// key in the wrong place. Looks at columns alone and shows nothing of the text.

import type { SyntaxProblem } from "./readYaml.ts"

/** Spaces before the text of a line, or undefined where there is none to go by: empty lines and comments. */
const indentOf = (line: string): number | undefined => {
  const indent = line.search(/[^ ]/)
  return indent === -1 || line[indent] === "#" || line[indent] === "\r" ? undefined : indent
}

/** Columns, from 0, in which something starts in a line: its own indentation, and what follows each `- `. */
const startsOf = (line: string, indent: number): ReadonlyArray<number> => {
  const starts = [indent]
  let rest = indent
  while (/^- +[^ ]/.test(line.slice(rest))) {
    rest += 1 + line.slice(rest + 1).search(/[^ ]/)
    starts.push(rest)
  }
  return starts
}

/** The columns that are in use right before a line: those in which it may go on. */
const openColumns = (lines: ReadonlyArray<string>, index: number, indent: number): ReadonlyArray<number> => {
  const open: Array<number> = []
  for (const line of lines.slice(0, index)) {
    const own = indentOf(line)
    if (own === undefined) continue
    while ((open.at(-1) ?? -1) >= own) open.pop()
    open.push(...startsOf(line, own))
  }
  // Of the columns left of the line the nearest can be meant, of those right of it any.
  const outer = open.filter((column) => column < indent).at(-1)
  return open.filter((column) => column > indent || column === outer || column === indent)
}

const spaces = (count: number): string => (count === 1 ? "1 space" : `${count} spaces`)

/**
 * The problem of the indentation behind a problem of the parser at `line` (from 1), or undefined where it is another.
 * A line that is indented too far is noticed by the parser in the line before.
 */
export const indentFault = (
  lines: ReadonlyArray<string>,
  code: "BAD_INDENT" | "MISSING_CHAR" | "BLOCK_AS_IMPLICIT_KEY",
  line: number
): SyntaxProblem | undefined => {
  if (code !== "BLOCK_AS_IMPLICIT_KEY") {
    const text = lines[line - 1] ?? ""
    const indent = indentOf(text)
    if (indent === undefined || !/^(- |[^\s"'[{][^"'[{]*:( |\r?$))/.test(text.slice(indent))) return undefined
    const open = openColumns(lines, line - 1, indent)
    if (open.includes(indent) || !open.some((column) => column > indent)) return undefined
    return {
      line,
      column: indent + 1,
      message: `indented by ${spaces(indent)}, the lines before by ${open.join(" or ")}; what belongs to one map or list starts in the same column`
    }
  }
  const next = lines.findIndex((text, index) => index >= line && indentOf(text) !== undefined)
  const text = lines[next] ?? ""
  const indent = indentOf(text)
  if (indent === undefined) return undefined
  if (text[indent] === "\t") return tabAt(next, indent)
  const starts = startsOf(lines[line - 1] ?? "", indentOf(lines[line - 1] ?? "") ?? 0)
  const before = starts.at(-1) ?? 0
  if (indent <= before) return undefined
  return {
    line: next + 1,
    column: indent + 1,
    message: `indented by ${spaces(indent)}, further than the line before, which has its value already; keys of one map start in the same column, here after ${spaces(before)}`
  }
}

const tabAt = (index: number, indent: number): SyntaxProblem => ({
  line: index + 1,
  column: indent + 1,
  message: "a tab in the indentation; YAML allows spaces only"
})
