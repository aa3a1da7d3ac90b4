// Questions to the schema by path: which keys a record has, what kind of value a key takes. Used for suggestions, for
// texts that stand for numbers (variables, overrides), and for the documentation.

import { type Schema, SchemaAST } from "effect"
import type { ConfigPath } from "./ConfigProblem.ts"
import { EdgeConfig } from "./EdgeConfig.ts"

/** What the schema knows about a key itself. */
export interface KeyFacts {
  readonly description: string
  readonly configDefault: Schema.Json | undefined
  /** What the key is where it is absent, if the loader fills it in. */
  readonly filledIn: string | undefined
  readonly required: boolean
}

/** The members of a union, or the schema itself. */
export const members = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(members) : [ast]

/** Meaning, default and need of a key. */
export const keyFacts = (property: SchemaAST.PropertySignature): KeyFacts => {
  const annotations = property.type.context?.annotations ?? {}
  const filledIn = typeof annotations.configFilledIn === "string" ? annotations.configFilledIn : undefined
  const configDefault = annotations.configDefault as Schema.Json | undefined
  return {
    description: typeof annotations.description === "string" ? annotations.description : "",
    configDefault,
    filledIn,
    required: filledIn === undefined && configDefault === undefined && !SchemaAST.isOptional(property.type)
  }
}

const step = (ast: SchemaAST.AST, part: string | number): ReadonlyArray<SchemaAST.AST> =>
  members(ast).flatMap((member) => {
    if (SchemaAST.isArrays(member)) return typeof part === "number" ? member.rest.slice(0, 1) : []
    if (!SchemaAST.isObjects(member) || typeof part === "number") return []
    const property = member.propertySignatures.find(({ name }) => name === part)
    if (property !== undefined) return [property.type]
    return member.indexSignatures.map(({ type }) => type)
  })

/** Every schema that the value at a path could be of. */
export const schemasAt = (path: ConfigPath): ReadonlyArray<SchemaAST.AST> =>
  path.reduce<ReadonlyArray<SchemaAST.AST>>(
    (at, part) => at.flatMap((ast) => step(ast, part)),
    [EdgeConfig.ast]
  )

const isOfType = (ast: SchemaAST.Objects, type: string): boolean =>
  ast.propertySignatures.some(
    (property) =>
      property.name === "type" && SchemaAST.isLiteral(property.type) && property.type.literal === type
  )

/** The keys that records at a path have; with a `type`, those of that type alone. */
export const keysAt = (path: ConfigPath, type?: string): ReadonlyArray<string> => [
  ...new Set(
    schemasAt(path)
      .flatMap(members)
      .filter(SchemaAST.isObjects)
      .filter((ast) => type === undefined || isOfType(ast, type))
      .flatMap((ast) => ast.propertySignatures.map(({ name }) => String(name)))
  )
]

/** What a leaf of the configuration is written as. */
export type LeafKind = "text" | "number" | "boolean" | "duration" | "size" | "secret" | "choice" | "other"

/** The kind of values that a schema describes. */
export const leafKind = (ast: SchemaAST.AST): LeafKind => {
  const declared = ast.annotations?.configType ?? ast.checks?.at(-1)?.annotations?.configType
  if (declared === "duration" || declared === "size" || declared === "secret") return declared
  const encoded = members(SchemaAST.toEncoded(ast))
  if (encoded.every(SchemaAST.isLiteral)) return "choice"
  if (encoded.every(SchemaAST.isString)) return "text"
  if (encoded.every(SchemaAST.isNumber)) return "number"
  if (encoded.every(SchemaAST.isBoolean)) return "boolean"
  return "other"
}

/** The kind of the leaf at a path; "other" for records, lists and unknown paths. */
export const leafKindAt = (path: ConfigPath): LeafKind => {
  const kinds = new Set(schemasAt(path).map(leafKind))
  return kinds.size === 1 ? [...kinds][0]! : "other"
}

/** The words that may stand at a path, where only some may. */
export const choicesAt = (path: ConfigPath): ReadonlyArray<string> =>
  schemasAt(path)
    .flatMap(members)
    .filter(SchemaAST.isLiteral)
    .map(({ literal }) => String(literal))

/** Paths of all leaves outside of lists and free-form maps: what an override can set. */
export const overridablePaths = (): ReadonlyArray<ConfigPath> => {
  const walk = (ast: SchemaAST.AST, path: ConfigPath): ReadonlyArray<ConfigPath> => {
    if (SchemaAST.isObjects(ast) && ast.propertySignatures.length > 0) {
      return ast.propertySignatures.flatMap(({ name, type }) => walk(type, [...path, String(name)]))
    }
    return leafKind(ast) === "other" ? [] : [path]
  }
  return walk(EdgeConfig.ast, [])
}

/**
 * A text in the place of a number or a boolean, as that. A text that is none stays as it is and will be refused as a
 * text.
 */
export const coerce = (text: string, kind: LeafKind): unknown => {
  const trimmed = text.trim()
  if ((kind === "number" || kind === "size") && /^[-+]?\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed)
  if (kind === "boolean" && (trimmed === "true" || trimmed === "false")) return trimmed === "true"
  return text
}
