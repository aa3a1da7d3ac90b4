// The JSON Schema of the configuration file, for editors: what the schema says, with the meaning and the default of
// each key, and with ${VAR} allowed wherever the loader fills it in.

import { type JsonSchema, Schema, SchemaAST } from "effect"
import { keyFacts, leafKind, members } from "./configShape.ts"
import { EdgeConfig } from "./EdgeConfig.ts"

type Node = JsonSchema.JsonSchema

const variable = { $ref: "#/$defs/variable" }

/** Patterns of texts that are decoded; the conversion of the schema only sees that they are texts. */
const patterns: Readonly<Record<string, string>> = {
  duration: "^\\d+(\\.\\d+)?(ms|s|m|h)$",
  size: "^\\d+(B|KiB|MiB|GiB)$"
}

/** JSON Schema, draft 2020-12. */
export const configJsonSchema = (): Node => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(EdgeConfig, { onExcessProperty: "error" })
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "IOP edge",
    description: "The configuration of an IOP edge.",
    ...describe(EdgeConfig.ast, schema),
    $defs: {
      variable: {
        type: "string",
        pattern: "\\$\\{[^{}]+\\}",
        description: "Filled in from the environment."
      },
      ...definitions
    }
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The members of a keyword such as anyOf. */
const nodesOf = (value: unknown): ReadonlyArray<Node> => (Array.isArray(value) ? value.filter(isNode) : [])

/** A schema without the descriptions that the conversion put into `allOf`: they are set anew at the key. */
const withoutNotes = (node: Node): Node => {
  const { allOf, ...rest } = node
  const kept = nodesOf(allOf).filter((part) => Object.keys(part).some((key) => key !== "description"))
  return kept.length === 0 ? rest : { ...rest, allOf: kept }
}

const describe = (ast: SchemaAST.AST, given: Node): Node => {
  const node = withoutNotes(given)
  if (SchemaAST.isObjects(ast) && ast.propertySignatures.length > 0) return describeRecord(ast, node)
  if (SchemaAST.isObjects(ast)) {
    const type = ast.indexSignatures[0]?.type
    return type === undefined || !isNode(node.additionalProperties)
      ? node
      : { ...node, additionalProperties: describe(type, node.additionalProperties) }
  }
  if (SchemaAST.isArrays(ast)) {
    const type = ast.rest[0]
    return type === undefined || !isNode(node.items) ? node : { ...node, items: describe(type, node.items) }
  }
  const kinds = members(ast)
  if (kinds.length > 1 && kinds.every(SchemaAST.isObjects)) {
    const { anyOf, oneOf, ...rest } = node
    return { ...rest, anyOf: nodesOf(anyOf ?? oneOf).map((member, index) => describe(kinds[index]!, member)) }
  }
  return describeLeaf(ast, node)
}

const describeRecord = (ast: SchemaAST.Objects, node: Node): Node => {
  const properties: Record<string, unknown> = {}
  for (const property of ast.propertySignatures) {
    const name = String(property.name)
    const given = isNode(node.properties) ? node.properties[name] : undefined
    const facts = keyFacts(property)
    properties[name] = {
      description: facts.description,
      ...(facts.configDefault === undefined ? {} : { default: facts.configDefault }),
      ...describe(property.type, isNode(given) ? given : {})
    }
  }
  const required = ast.propertySignatures.filter((property) => keyFacts(property).required)
  const { required: _, ...rest } = node
  return {
    ...rest,
    properties,
    ...(required.length === 0 ? {} : { required: required.map(({ name }) => String(name)) })
  }
}

/** A text without a pattern takes a variable by itself; the discriminator of a union is never one. */
const describeLeaf = (ast: SchemaAST.AST, node: Node): Node => {
  const pattern = patterns[leafKind(ast)]
  if (pattern === undefined) {
    return node.type === "string" && node.pattern === undefined && node.enum === undefined
      ? node
      : SchemaAST.isLiteral(ast) || Object.keys(node).length === 0
        ? node
        : { anyOf: [node, variable] }
  }
  const text = { type: "string", pattern }
  return { anyOf: leafKind(ast) === "size" ? [{ type: "integer" }, text, variable] : [text, variable] }
}
