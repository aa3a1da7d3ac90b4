// What the rules find in a tree, gathered as problems with a place. The first problem of a path is the one that is
// told: what comes after it (an empty text where a variable was not set) only follows from it.

import { type ConfigPath, type ConfigProblem, formatPath, sortProblems } from "./ConfigProblem.ts"
import type { ConfigTree } from "./ConfigTree.ts"
import type { TextPlace } from "./readYaml.ts"
import { shownPath } from "./shownPath.ts"

export interface FindingOptions {
  readonly severity?: "error" | "warning"
  /** Point at the key instead of its value. */
  readonly onKey?: boolean
  /** Where the value came from, if not from the file. */
  readonly origin?: string
  /** Point here. */
  readonly place?: TextPlace
}

export class Findings {
  readonly tree: ConfigTree
  private readonly file: string
  private readonly problems: Array<ConfigProblem> = []
  private readonly told = new Set<string>()

  constructor(tree: ConfigTree, file: string) {
    this.tree = tree
    this.file = file
  }

  /** Notes a problem, unless its path has one of that severity or a worse one. */
  add(path: ConfigPath, message: string, options: FindingOptions = {}): void {
    const text = formatPath(path)
    const severity = options.severity ?? "error"
    if (this.told.has(`error ${text}`) || this.told.has(`${severity} ${text}`)) return
    this.told.add(`${severity} ${text}`)
    const mark = this.tree.mark(path)
    const { column, line } = options.place ?? (options.onKey ? mark.key : mark)
    const origin = options.origin ?? mark.origin
    const place =
      origin === undefined ? { file: this.file, line, column } : { file: origin, line: 0, column: 0 }
    this.problems.push({
      path: shownPath(path),
      ...place,
      message,
      severity
    })
  }

  warn(path: ConfigPath, message: string, options: FindingOptions = {}): void {
    this.add(path, message, { ...options, severity: "warning" })
  }

  /** ` (line 12)` of a path, for messages that name a second place. */
  line(path: ConfigPath): string {
    const mark = this.tree.mark(path)
    return mark.origin === undefined ? ` (line ${mark.line})` : ""
  }

  sorted(): ReadonlyArray<ConfigProblem> {
    return sortProblems(this.problems)
  }
}
