import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Schema, SchemaAST, SchemaRepresentation } from "effect"
import { parse as parseYaml } from "yaml"
import { configDocument } from "./configDocument.ts"
import { configJsonSchema } from "./configJsonSchema.ts"
import { members } from "./configShape.ts"
import { EdgeConfig } from "./EdgeConfig.ts"
import { loaded } from "./testing/problemsOf.ts"

const read = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), "utf8")
const example = () => read("apps/edge/edge.example.yaml")
const env = {
  EDGE_KEY_LAPTOP: "k3y-of-the-laptop",
  TOWER_TOKEN: "token-of-the-tower",
  FAKE_TOKEN: "token-of-the-fake"
}

/** The names of all keys that records below a schema have. */
const keysBelow = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  members(ast).flatMap((member) => {
    if (SchemaAST.isArrays(member)) return member.rest.flatMap(keysBelow)
    if (!SchemaAST.isObjects(member)) return []
    return member.propertySignatures.flatMap(({ name, type }) => [String(name), ...keysBelow(type)])
  })

/** A check of plain values against the published schema. */
const validator = () => {
  const { $defs, $schema, ...schema } = configJsonSchema()
  const document = { dialect: "draft-2020-12" as const, schema, definitions: $defs as Record<string, never> }
  const published = SchemaRepresentation.fromJsonSchemaDocument(document, { patterns: "apply" })
  return Schema.is(published)
}

describe("files made from the schema", () => {
  it("config.schema.json is current", () => {
    assert.deepStrictEqual(JSON.parse(read("apps/edge/config.schema.json")), configJsonSchema())
  })

  it("docs/configuration.md is current", () => {
    assert.strictEqual(read("docs/configuration.md"), configDocument())
  })

  it("every key has a meaning", () => {
    for (const line of configDocument()
      .split("\n")
      .filter((row) => row.startsWith("| `"))) {
      assert.notMatch(line, /\| +\|$/, line)
    }
  })

  it("edge.example.yaml loads, and warns of nothing but its open listener", () => {
    const { config, warnings } = loaded(example(), { env })
    assert.deepStrictEqual(
      warnings.map(({ path }) => path),
      ["listen.nodes.host"]
    )
    assert.deepStrictEqual(
      config.nodes.map(({ alias }) => alias),
      ["gpu-1", "mac", "fake"]
    )
  })

  it("edge.example.yaml shows the defaults", () => {
    const minimal = loaded("nodes: [{ id: a, token: t }]").config
    const { api_keys, nodes, routes, ...sections } = loaded(example(), { env }).config
    assert.deepStrictEqual(
      Schema.encodeSync(EdgeConfig)({ ...minimal, ...sections }),
      Schema.encodeSync(EdgeConfig)(minimal)
    )
  })

  it("edge.example.yaml has every key", () => {
    const text = example()
    for (const key of keysBelow(EdgeConfig.ast)) {
      assert.match(text, new RegExp(`(^|[\\s{#-])${key}:`, "m"), `${key} is missing`)
    }
  })

  it("the published schema closes every record", () => {
    const open = (node: unknown): number => {
      if (typeof node !== "object" || node === null) return 0
      const record = node as Record<string, unknown>
      const own = "properties" in record && record.additionalProperties !== false ? 1 : 0
      return own + Object.values(record).reduce<number>((sum, inner) => sum + open(inner), 0)
    }
    assert.strictEqual(open(configJsonSchema()), 0)
  })

  it("the published schema takes the example, variables included, and refuses wrong types", () => {
    const validate = validator()
    const value = parseYaml(example()) as Record<string, unknown>
    assert.strictEqual(validate(value), true)
    assert.strictEqual(validate({ nodes: [{ id: "a", token: `\${T}`, runtime: { slots: `\${N}` } }] }), true)
    for (const wrong of [
      { listen: { http: { port: 70_000 } } },
      { listen: { http: { port: "many" } } },
      { runs: { queue_timeout: 30 } },
      { nodes: [{ token: "t" }] },
      { nodes: [{ id: "a", token: "t", adapters: [{ name: "a", type: "mocks" }] }] }
    ]) {
      assert.strictEqual(validate(wrong), false, JSON.stringify(wrong))
    }
  })
})
