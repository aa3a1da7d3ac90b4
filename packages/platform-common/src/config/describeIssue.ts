// Issues of the schema in words: what was expected and what was found, without showing what must not be seen.

import { SchemaAST, type SchemaIssue } from "effect"
import { type ConfigPath, quote } from "./ConfigProblem.ts"
import type { ConfigTree } from "./ConfigTree.ts"
import { choicesAt, keysAt, type LeafKind, leafKindAt, members } from "./configShape.ts"
import { nearest } from "./nearest.ts"
import { mayShowKey } from "./shownPath.ts"

/** A finding of the schema; `onKey` says that the key is meant and not its value. */
export interface DescribedIssue {
  readonly path: ConfigPath
  readonly message: string
  readonly onKey: boolean
}

const expectedOf = (ast: SchemaAST.AST): string => {
  const own = ast.annotations?.expected
  if (typeof own === "string") return own
  if (SchemaAST.isObjects(ast)) return "a map"
  if (SchemaAST.isArrays(ast)) return "a list"
  if (SchemaAST.isLiteral(ast)) return quote(String(ast.literal))
  if (SchemaAST.isString(ast)) return "a text"
  if (SchemaAST.isNumber(ast)) return "a number"
  if (SchemaAST.isBoolean(ast)) return "true or false"
  return "a plain value"
}

/**
 * Kinds whose texts are no secrets and help to see the mistake, as long as they are short: a line without its colon
 * becomes part of the text above it, token and all.
 */
const shown: ReadonlySet<LeafKind> = new Set(["duration", "size", "choice", "number", "boolean"])

const shortText = /^[\w.,:+-]{1,16}( [A-Za-z]{1,10})?$/

const found = (value: unknown, kind: LeafKind, hidden: boolean): string => {
  if (value === null || value === undefined) return "nothing"
  if (Array.isArray(value)) return "a list"
  if (typeof value === "object") return "a map"
  const show = !hidden && shown.has(kind)
  if (typeof value === "number") return show ? `the number ${value}` : "a number"
  if (typeof value === "boolean") return show ? `the word ${value}` : "true or false"
  if (value === "") return "an empty text"
  return show && shortText.test(String(value)) ? `the text ${quote(String(value))}` : "a text"
}

/** `; did you mean x?`, or all that there is when nothing is near. */
export const suggestion = (word: string, known: ReadonlyArray<string>): string => {
  const near = nearest(word, known)
  if (near !== undefined) return `; did you mean ${near}?`
  return known.length === 0 ? "" : `; known here: ${known.slice(0, 24).join(", ")}`
}

const wrongValue = (tree: ConfigTree, path: ConfigPath, expected: string): string => {
  const value = tree.get(path)
  const mark = tree.mark(path)
  const kind = leafKindAt(path)
  const textual = kind === "text" || kind === "secret" || kind === "choice"
  if (value === null && mark.blank) return `is empty; expected ${expected}`
  if (textual && (value === null || typeof value === "number" || typeof value === "boolean")) {
    const word = value === null ? "null" : typeof value === "number" ? "a number" : "true or false"
    return `YAML reads this as ${word}; quote it`
  }
  const choices =
    kind === "choice" && typeof value === "string" && !mark.hidden
      ? nearest(value, choicesAt(path))
      : undefined
  const hint = choices === undefined ? "" : `; did you mean ${choices}?`
  const from = mark.variables.length > 0 ? ` from ${mark.variables.join(", ")}` : ""
  return `expected ${expected}, found ${found(value, kind, mark.hidden)}${from}${hint}`
}

/** All findings in an issue, in the order of the schema. */
export const describeIssue = (
  issue: SchemaIssue.Issue,
  tree: ConfigTree,
  path: ConfigPath = []
): ReadonlyArray<DescribedIssue> => {
  const wrong = (expected: string): ReadonlyArray<DescribedIssue> => [
    { path, message: wrongValue(tree, path, expected), onKey: false }
  ]
  switch (issue._tag) {
    case "Pointer":
      return describeIssue(issue.issue, tree, [
        ...path,
        ...issue.path.map((part) => (typeof part === "number" ? part : String(part)))
      ])
    case "Encoding":
      return describeIssue(issue.issue, tree, path)
    case "Filter": {
      const expected = issue.filter.annotations?.expected
      return typeof expected === "string" ? wrong(expected) : describeIssue(issue.issue, tree, path)
    }
    case "Composite":
      return issue.issues.flatMap((inner) => describeIssue(inner, tree, path))
    case "AnyOf":
      return describeUnion(issue, tree, path)
    case "MissingKey":
      return [{ path, message: "is missing", onKey: true }]
    case "UnexpectedKey":
      return [unknownKey(tree, path)]
    case "InvalidType":
    case "OneOf":
      return wrong(expectedOf(issue.ast))
    case "InvalidValue":
    case "Forbidden": {
      const expected = issue.annotations?.expected
      return wrong(typeof expected === "string" ? expected : "a valid value")
    }
  }
}

const unknownKey = (tree: ConfigTree, path: ConfigPath): DescribedIssue => {
  const key = String(path.at(-1))
  const record = path.slice(0, -1)
  const message = mayShowKey(record, key)
    ? `unknown key${suggestion(key, knownKeys(tree, record))}`
    : "unknown key, not shown since it may be a piece of a secret; is a quote or a colon missing?"
  return { path, message, onKey: true }
}

/** The keys of a record; of an adapter, those of its own type alone. */
const knownKeys = (tree: ConfigTree, path: ConfigPath): ReadonlyArray<string> => {
  const type = tree.get([...path, "type"])
  const own = keysAt(path, typeof type === "string" ? type : undefined)
  return own.length > 0 ? own : keysAt(path)
}

/** A union of records is told apart by `type`; any other is described as a whole. */
const describeUnion = (
  issue: SchemaIssue.AnyOf,
  tree: ConfigTree,
  path: ConfigPath
): ReadonlyArray<DescribedIssue> => {
  const records = members(issue.ast).filter(SchemaAST.isObjects)
  const value = tree.get(path)
  if (records.length < 2 || typeof value !== "object" || value === null || Array.isArray(value)) {
    return [{ path, message: wrongValue(tree, path, expectedOf(issue.ast)), onKey: false }]
  }
  const typePath = [...path, "type"]
  const types = choicesAt(typePath)
  if (types.includes(String(tree.get(typePath)))) {
    return issue.issues.flatMap((inner) => describeIssue(inner, tree, path))
  }
  const one = `one of ${types.join(", ")}`
  return Object.hasOwn(value, "type")
    ? [{ path: typePath, message: wrongValue(tree, typePath, one), onKey: false }]
    : [{ path: typePath, message: `is missing; expected ${one}`, onKey: true }]
}
