// The reference of the configuration as Markdown: a table for each record, in the order of the schema.

import { SchemaAST } from "effect"
import { keyFacts, leafKind, members } from "./configShape.ts"
import { EdgeConfig } from "./EdgeConfig.ts"

const introduction = `# Configuration

<!-- Made from the schema by \`pnpm --filter @iop/platform-common config-files\`; change the schema, not this page. -->

An edge is configured by one YAML file. [edge.example.yaml](../apps/edge/edge.example.yaml) shows every key, and
[config.schema.json](../apps/edge/config.schema.json) lets an editor complete and check them:

\`\`\`yaml
# yaml-language-server: $schema=./config.schema.json
nodes:
  - id: tower
    token: \${TOWER_TOKEN}
    adapters:
      - { name: mock, type: mock, slots: 4 } # the fake node's
      - { name: shout, type: custom, kind: shout, targets: [loud] } # one of your own, by the SDK
\`\`\`

**What runs today:** adapters of type \`mock\`, which the fake node has, and \`custom\`, which are
[yours](../packages/node-sdk/README.md). The types \`openai\`, \`ollama\` and \`cli\` are checked and handed to the node, but no
program in this repository runs them yet; a node by others may. \`routes\` are checked and not used yet.

\`edge check FILE\` says everything that is wrong with a file, with line and column, without starting anything; \`edge\` is
the alias that [operations.md](operations.md) begins with, or the bundle.

- **Variables.** \`\${NAME}\` in a value is filled in from the environment, \`\${NAME:-default}\` has a default, \`$\${\` is
  a literal \`\${\`. A variable that is not set is an error. What came from a variable is never printed.
- **Overrides.** A key outside of lists can also be set by a variable, \`listen.http.port\` by
  \`IOP_EDGE_LISTEN_HTTP_PORT\`. A flag wins over the variable, the variable over the file, the file over the default.
- **Secrets.** Tokens and keys are best kept out of the file: in a variable, in a file of their own (\`token_file\`,
  \`key_file\`), or, for nodes, as a hash (\`token_sha256\`). Each must be there once and nowhere else.
- **Quoting.** A token, key, id or label that YAML reads as a number, a boolean or null must be quoted: \`token: "12345"\`.
- **Durations** are written with their unit: \`500ms\`, \`30s\`, \`5m\`, \`1h\`. **Sizes** are bytes, or \`256KiB\`, \`1MiB\`.
- **Listening beyond this machine** with \`listen.http\` or \`listen.ops\` needs \`api_keys\`, or \`insecure: true\`. Without
  \`listen.nodes.tls\` the links of nodes are not encrypted; the edge warns about it at every start.

The file is read once, at start. Relative paths start at the folder of the file.

## Sections
`

/** The whole page. */
export const configDocument = (): string => {
  const sections: Array<string> = []
  describeRecord("", "", EdgeConfig.ast, sections)
  return [introduction, ...sections].join("\n")
}

/** `title` is the heading, `path` what the headings of inner records start with. */
const describeRecord = (title: string, path: string, ast: SchemaAST.AST, sections: Array<string>): void => {
  if (!SchemaAST.isObjects(ast)) return
  const rows = ast.propertySignatures.map(row)
  if (title !== "") sections.push(`## ${title}\n`)
  sections.push("| key | type | default | meaning |", "| --- | --- | --- | --- |", ...rows, "")
  for (const { name, type } of ast.propertySignatures) {
    describeInner(path === "" ? String(name) : `${path}.${String(name)}`, type, sections)
  }
}

/** Records, lists of records and unions of records get tables of their own. */
const describeInner = (path: string, ast: SchemaAST.AST, sections: Array<string>): void => {
  if (SchemaAST.isObjects(ast)) {
    if (ast.propertySignatures.length > 0) describeRecord(`\`${path}\``, path, ast, sections)
    return
  }
  const item = SchemaAST.isArrays(ast) ? ast.rest[0] : undefined
  if (item === undefined) return
  const kinds = members(item).filter(SchemaAST.isObjects)
  const inner = `${path}[]`
  for (const kind of kinds) {
    describeRecord(
      kinds.length === 1 ? `\`${inner}\`` : `\`${inner}\` of type \`${typeName(kind)}\``,
      inner,
      kind,
      sections
    )
  }
}

const typeName = (ast: SchemaAST.Objects): string =>
  ast.propertySignatures
    .filter(({ name }) => name === "type")
    .map(({ type }) => (SchemaAST.isLiteral(type) ? String(type.literal) : ""))
    .join("")

const row = (property: SchemaAST.PropertySignature): string => {
  const facts = keyFacts(property)
  const inner = SchemaAST.isObjects(property.type) && property.type.propertySignatures.length > 0
  const fallback = inner
    ? ""
    : facts.required
      ? "required"
      : (facts.filledIn ?? (facts.configDefault === undefined ? "" : defaultText(facts.configDefault)))
  const cells = [`\`${String(property.name)}\``, typeText(property.type), fallback, facts.description]
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`
}

const defaultText = (value: unknown): string =>
  `\`${typeof value === "string" ? value : JSON.stringify(value)}\``

/** In words: what may stand behind the key. */
const typeText = (ast: SchemaAST.AST): string => {
  const kind = leafKind(ast)
  if (kind === "choice") return choices(ast)
  if (kind === "number") return expected(ast) ?? "number"
  if (kind === "boolean") return "true or false"
  if (kind === "text" && SchemaAST.toEncoded(ast) === ast) return "text"
  if (kind !== "other") return kind
  if (SchemaAST.isArrays(ast)) return "list"
  return "map"
}

const choices = (ast: SchemaAST.AST): string =>
  members(ast)
    .flatMap((member) => (SchemaAST.isLiteral(member) ? [`\`${member.literal}\``] : []))
    .join(", ")

const expected = (ast: SchemaAST.AST): string | undefined => {
  const text = ast.checks?.at(-1)?.annotations?.expected ?? ast.annotations?.expected
  return typeof text === "string" ? text.replace(/^a /, "") : undefined
}
