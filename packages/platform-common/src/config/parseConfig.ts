// From text to a checked configuration, or to all that is wrong with it at once. Reading files is left to the caller in
// `openConfig`; `parseConfig` does it by itself.

import { readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { Exit, Result, Schema, SchemaIssue } from "effect"
import { type ConfigPath, type ConfigProblem, ConfigProblems, formatPath, quote } from "./ConfigProblem.ts"
import { ConfigTree, isRecord } from "./ConfigTree.ts"
import { checkNodes, recordsAt, shownText } from "./checkNodes.ts"
import { checkRoutes } from "./checkRoutes.ts"
import { checkSections } from "./checkSections.ts"
import { coerce, leafKindAt, overridablePaths } from "./configShape.ts"
import { describeIssue, suggestion } from "./describeIssue.ts"
import { EdgeConfig } from "./EdgeConfig.ts"
import { Findings } from "./Findings.ts"
import { Identifier } from "./names.ts"
import { readYaml } from "./readYaml.ts"

export type Environment = Readonly<Record<string, string | undefined>>

export interface ParseOptions {
  /** The name of the file in messages. */
  readonly file: string
  /** Variables for `${NAME}`, and `IOP_EDGE_…` for keys outside of lists. */
  readonly env: Environment
  /** Where relative `*_file` paths start. Default: the folder of `file`. */
  readonly baseDir?: string
  /** Values of flags by path, such as `listen.http.port`; they win over variables, those over the file. */
  readonly overrides?: Readonly<Record<string, string>>
}

/** A configuration that an edge can start with. */
export interface LoadedConfig {
  readonly config: EdgeConfig
  /** Sorted by place; never errors. */
  readonly warnings: ReadonlyArray<ConfigProblem>
}

/** The content of a file that the configuration names, or why there is none ("no such file"). */
export type FileContent = { readonly text: string } | { readonly fault: string }

/** A configuration whose `*_file` keys are still to be read. */
export interface OpenedConfig {
  /** Absolute paths. */
  readonly files: ReadonlyArray<string>
  readonly finish: (contents: ReadonlyMap<string, FileContent>) => Result.Result<LoadedConfig, ConfigProblems>
}

/** The environment variable that overrides a key: `listen.http.port` → `IOP_EDGE_LISTEN_HTTP_PORT`. */
export const overrideVariable = (path: ConfigPath): string => `IOP_EDGE_${path.join("_").toUpperCase()}`

const decode = Schema.decodeUnknownExit(EdgeConfig, { errors: "all", onExcessProperty: "error" })

/** Parses a text and reads the files that it names. Errors never hold a secret. */
export const parseConfig = (
  text: string,
  options: ParseOptions & { readonly readFile?: (path: string) => FileContent }
): Result.Result<LoadedConfig, ConfigProblems> =>
  Result.flatMap(openConfig(text, options), (opened) => {
    const read = options.readFile ?? readTextFile
    return opened.finish(new Map(opened.files.map((path) => [path, read(path)])))
  })

/** Parses a text. Fails at once where it is no YAML; everything else is told by `finish`. */
export const openConfig = (
  text: string,
  options: ParseOptions
): Result.Result<OpenedConfig, ConfigProblems> => {
  const { env, file } = options
  const yaml = readYaml(text.startsWith("\ufeff") ? text.slice(1) : text)
  if (!("contents" in yaml)) {
    const problems = yaml.map((fault) => ({ path: "", file, ...fault, severity: "error" as const }))
    return Result.fail(new ConfigProblems({ problems }))
  }
  const tree = ConfigTree.fromYaml(yaml, env)
  const findings = new Findings(tree, file)
  if (tree.tooLarge) {
    for (const { message, path, place } of tree.problems) findings.add(path, message, { place })
    return Result.fail(new ConfigProblems({ problems: findings.sorted() }))
  }
  if (!isRecord(tree.value)) {
    const nothing = tree.value === null || tree.value === undefined
    const fault = nothing ? "the file is empty; it needs at least nodes" : notAMap(tree.value)
    findings.add([], fault)
    return Result.fail(new ConfigProblems({ problems: findings.sorted() }))
  }
  applyOverrides(findings, env, options.overrides ?? {})
  for (const { message, path, place } of tree.problems) {
    // What an override has replaced need not make sense any more.
    if (tree.mark(path).origin === undefined) findings.add(path, message, { place })
  }
  coerceFilledIn(tree)
  const named = fileKeys(tree, resolve(options.baseDir ?? dirname(file)))
  return Result.succeed({
    files: [...new Set(named.map(({ absolute }) => absolute))],
    finish: (contents) => finish(findings, named, contents)
  })
}

const notAMap = (value: unknown): string =>
  `the file must be a map of sections such as listen, nodes and routes; found ${Array.isArray(value) ? "a list" : "a single value"}`

const finish = (
  findings: Findings,
  named: ReadonlyArray<NamedFile>,
  contents: ReadonlyMap<string, FileContent>
): Result.Result<LoadedConfig, ConfigProblems> => {
  const { tree } = findings
  for (const { absolute, into, path } of named) {
    const content = contents.get(absolute) ?? { fault: "not read" }
    const shown = shownText(tree, path) === undefined ? "the file" : quote(absolute)
    if ("fault" in content) findings.add(path, `cannot read ${shown}: ${content.fault}`)
    else if (into !== undefined) {
      const text = content.text.replace(/^\ufeff/, "").trimEnd()
      tree.set(into, text, { ...tree.mark(path), hidden: true, read: true })
    }
    tree.set(path, absolute, { ...tree.mark(path) })
  }
  checkNodes(findings)
  fillAliases(tree)
  const decoded = decode(tree.value)
  if (Exit.isFailure(decoded)) {
    for (const reason of decoded.cause.reasons) {
      if (reason._tag !== "Fail" || !SchemaIssue.isIssue(reason.error.issue)) continue
      for (const { path, message, ...more } of describeIssue(reason.error.issue, tree)) {
        findings.add(path, message, more)
      }
    }
  }
  checkRoutes(findings)
  checkSections(findings)
  const problems = findings.sorted()
  const failed = problems.some(({ severity }) => severity === "error")
  return Exit.isSuccess(decoded) && !failed
    ? Result.succeed({ config: decoded.value, warnings: problems })
    : Result.fail(new ConfigProblems({ problems }))
}

const COMMAND_LINE = "the command line"

/** Flags over variables over the file. */
const applyOverrides = (
  findings: Findings,
  env: Environment,
  flags: Readonly<Record<string, string>>
): void => {
  const { tree } = findings
  const paths = new Map(overridablePaths().map((path) => [formatPath(path), path]))
  const put = (path: ConfigPath, text: string, origin: string) =>
    tree.set(path, coerce(text, leafKindAt(path)), { hidden: true, blank: false, variables: [], origin })
  for (const path of paths.values()) {
    const name = overrideVariable(path)
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    // An empty variable is how container tools write one that is not set.
    if (value !== undefined && value !== "") put(path, value, `the variable ${name}`)
  }
  for (const [name, value] of Object.entries(flags)) {
    const path = paths.get(name)
    if (path !== undefined) put(path, value, COMMAND_LINE)
    else
      findings.add(name.split("."), `no setting of this name${suggestion(name, [...paths.keys()])}`, {
        origin: COMMAND_LINE
      })
  }
}

/** `port: ${PORT}` means the number; what came out of a variable is read again where a number is due. */
const coerceFilledIn = (tree: ConfigTree): void => {
  const walk = (value: unknown, path: ConfigPath): void => {
    if (typeof value === "string") {
      const mark = tree.mark(path)
      if (mark.variables.length === 0) return
      const better = coerce(value, leafKindAt(path))
      if (better !== value) tree.set(path, better, mark)
    } else if (typeof value === "object" && value !== null) {
      for (const [key, inner] of Object.entries(value))
        walk(inner, [...path, Array.isArray(value) ? Number(key) : key])
    }
  }
  walk(tree.value, [])
}

const isIdentifier = Schema.is(Identifier)

/** A node without an alias goes by its id. */
const fillAliases = (tree: ConfigTree): void => {
  for (const { path, value } of recordsAt(tree, ["nodes"])) {
    if (Object.hasOwn(value, "alias")) continue
    // Without a usable id the decoding fails at the id; the alias is not to be blamed as well.
    value.alias = isIdentifier(value.id) && !tree.mark([...path, "id"]).blank ? value.id : "node"
  }
}

interface NamedFile {
  readonly path: ConfigPath
  readonly absolute: string
  /** Where the content belongs. */
  readonly into: ConfigPath | undefined
}

const fileKeys = (tree: ConfigTree, baseDir: string): ReadonlyArray<NamedFile> => {
  const tls = ["cert_file", "key_file", "client_ca_file"].map((name) => ({
    path: ["listen", "nodes", "tls", name],
    into: undefined
  }))
  const secrets = [
    ...recordsAt(tree, ["nodes"]).map(({ path }) => ({
      path: [...path, "token_file"],
      into: [...path, "token"]
    })),
    ...recordsAt(tree, ["api_keys"]).map(({ path }) => ({
      path: [...path, "key_file"],
      into: [...path, "key"]
    }))
  ]
  return [...tls, ...secrets].flatMap(({ into, path }) => {
    const value = tree.get(path)
    // A record that has both is refused; the one that is written there stays.
    const free = into === undefined || !tree.has(into)
    return typeof value === "string" && value.trim() !== "" && free
      ? [{ path, absolute: resolve(baseDir, value), into }]
      : []
  })
}

/** Why a file could not be read, in a few words. */
export const fileFault = (code: string | undefined): string => {
  switch (code) {
    case "ENOENT":
    case "NotFound":
      return "no such file"
    case "EISDIR":
      return "it is a directory"
    case "EACCES":
    case "EPERM":
    case "PermissionDenied":
      return "no permission"
    default:
      return code === undefined ? "it cannot be read" : `it cannot be read (${code})`
  }
}

const readTextFile = (path: string): FileContent => {
  try {
    return { text: readFileSync(path, "utf8") }
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : undefined
    return { fault: fileFault(code) }
  }
}
