// What is wrong with a configuration, for a person: where it is, what it is, what to do. No problem ever holds the
// value of a secret or of a variable.

import { Data } from "effect"

/** A key or an index on the way to a value. */
export type ConfigPath = ReadonlyArray<string | number>

export interface ConfigProblem {
  /** Such as `nodes[2].token`; empty where the file as a whole is meant. */
  readonly path: string
  /** The file, or what else the value came from: a variable, the command line. */
  readonly file: string
  /** From 1; 0 where the file has no such place. */
  readonly line: number
  /** From 1; 0 where the file has no such place. */
  readonly column: number
  readonly message: string
  /** A warning does not keep an edge from starting. */
  readonly severity: "error" | "warning"
}

/** `nodes[2].labels.gpu`; keys that are no plain words are quoted, control characters escaped, long keys cut. */
export const formatPath = (path: ConfigPath): string => {
  let text = ""
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`
    else if (/^[A-Za-z0-9_-]{1,64}$/.test(part)) text += text === "" ? part : `.${part}`
    else text += `[${quote(part)}]`
  }
  return text
}

/** A text in quotes, on one line, at most 64 characters of it. */
export const quote = (text: string): string => {
  const cut = text.length > 64 ? `${text.slice(0, 64)}…` : text
  return JSON.stringify(cut).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`
  )
}

/** `edge.yaml:12:5  nodes[2].token: message`, one line. */
export const formatProblem = (problem: ConfigProblem): string => {
  const place = problem.line === 0 ? problem.file : `${problem.file}:${problem.line}:${problem.column}`
  const path = problem.path === "" ? "" : `${problem.path}: `
  return `${place}  ${problem.severity === "warning" ? "warning: " : ""}${path}${problem.message}`
}

/** Order of reading: by line, then by column, then as found. */
export const sortProblems = (problems: ReadonlyArray<ConfigProblem>): ReadonlyArray<ConfigProblem> =>
  problems.toSorted((a, b) => a.line - b.line || a.column - b.column)

/** A configuration that cannot be used. Holds warnings too, sorted by place. */
export class ConfigProblems extends Data.TaggedError("ConfigProblems")<{
  readonly problems: ReadonlyArray<ConfigProblem>
}> {
  /** One line for each problem. */
  override get message() {
    return this.problems.map(formatProblem).join("\n")
  }
}
