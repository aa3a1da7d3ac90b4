// YAML text to a document, within bounds that hold for any text: size, number of pieces and depth are found out
// before anything recurses. Messages are ours, never the parser's.

import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isNode,
  Lexer,
  LineCounter,
  type ParsedNode,
  Parser,
  visit,
  YAMLParseError
} from "yaml"
import { indentFault } from "./indentFault.ts"
import { yamlMessage } from "./yamlMessages.ts"

/** Some thousand nodes with long adapters; a bomb that the parser can take in a fraction of a second. */
export const MAX_CONFIG_BYTES = 1024 * 1024
/** Lexical pieces (words, punctuation, line breaks): bounds memory, since each becomes an object of some 500 bytes. */
export const MAX_CONFIG_PIECES = 200_000
/** Levels of maps and lists; the schema itself has seven, `extra` may add some. */
export const MAX_CONFIG_DEPTH = 64
/** A document needs one at most; each wrong one costs the parser an error object. */
const MAX_DIRECTIVES = 16
/** More messages about one broken file help nobody. */
const MAX_SYNTAX_PROBLEMS = 20

/** A place in the text, from 1. */
export interface TextPlace {
  readonly line: number
  readonly column: number
}

export interface SyntaxProblem extends TextPlace {
  readonly message: string
}

/** A document without syntax errors, and where in the text an offset is. */
export interface YamlText {
  readonly contents: ParsedNode | null
  readonly placeOf: (offset: number) => TextPlace
}

const allowedTag = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$|^!$/

/** The document of a text, or what keeps it from being one. */
export const readYaml = (text: string): YamlText | ReadonlyArray<SyntaxProblem> => {
  const lines = new LineCounter()
  const placeOf = (offset: number): TextPlace => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) {
    return [{ line: 1, column: 1, message: "the file is larger than 1 MiB" }]
  }
  lines.addNewLine(0)
  const parser = new Parser(lines.addNewLine)
  const composer = new Composer({ version: "1.2", schema: "core", uniqueKeys: false, logLevel: "silent" })
  const tooMuch = (message: string) => [{ ...placeOf(parser.offset), message }]
  const tokens: Array<CST.Token> = []
  let pieces = 0
  for (const lexeme of new Lexer().lex(text)) {
    if (++pieces > MAX_CONFIG_PIECES) {
      return tooMuch("the file has too many values; 200,000 words and signs are the limit")
    }
    tokens.push(...parser.next(lexeme))
    // Each open map or list is an entry of the stack, as are the document and a value that has begun.
    if (parser.stack.length > MAX_CONFIG_DEPTH + 2) {
      return tooMuch(`nested too deeply; ${MAX_CONFIG_DEPTH} levels are the limit`)
    }
  }
  tokens.push(...parser.end())
  const directives = tokens.filter(({ type }) => type === "directive")
  if (directives.length > MAX_DIRECTIVES) {
    return [{ ...placeOf(directives[0]?.offset ?? 0), message: yamlMessage("BAD_DIRECTIVE") }]
  }
  const documents: Array<Document.Parsed> = []
  for (const document of composer.compose(tokens, true, text.length)) {
    if (documents.push(document) === 2) break
  }
  const [document, second] = documents
  if (document === undefined) return [{ line: 1, column: 1, message: "the file is empty" }]

  const problems: Array<SyntaxProblem> = []
  const report = (offset: number, message: string) => {
    const place = placeOf(offset)
    if (!problems.some((known) => known.line === place.line)) problems.push({ ...place, message })
  }
  const faults = [...document.errors, ...document.warnings]
  if (second !== undefined) {
    faults.push(new YAMLParseError([second.range[0], second.range[1]], "MULTIPLE_DOCS", ""))
  }
  const sourceLines = text.split("\n")
  // Lines whose other faults only follow from an indentation.
  const explained = new Set<number>()
  // Each looks at all lines above it: as many as are shown, not as many as a file can have.
  for (const { code, pos } of faults.slice(0, MAX_SYNTAX_PROBLEMS)) {
    if (code !== "BAD_INDENT" && code !== "MISSING_CHAR" && code !== "BLOCK_AS_IMPLICIT_KEY") continue
    const { line } = placeOf(pos[0])
    const indent = indentFault(sourceLines, code, line)
    if (indent === undefined) continue
    explained.add(line).add(indent.line)
    if (!problems.some((known) => known.line === indent.line)) problems.push(indent)
  }
  for (const { code, pos } of faults) {
    if (!explained.has(placeOf(pos[0]).line)) report(pos[0], yamlMessage(code))
  }
  visit(document, {
    Node: (_, node) => {
      if (isNode(node) && !isAlias(node) && node.tag !== undefined && !allowedTag.test(node.tag)) {
        const explicit = node.range?.[0] ?? 0
        report(explicit, yamlMessage("TAG_RESOLVE_FAILED"))
      }
    }
  })
  if (problems.length > 0) return problems.toSorted((a, b) => a.line - b.line).slice(0, MAX_SYNTAX_PROBLEMS)
  return { contents: document.contents, placeOf }
}
