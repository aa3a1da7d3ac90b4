// Rules about nodes and keys that span several records: names that must be unique, secrets that must be there once and
// nowhere else, one adapter name with one type. They read the tree and not the decoded value, so that all problems of
// a file are found at once.

import { createHash } from "node:crypto"
import { Exit, Schema, SchemaIssue } from "effect"
import { AdapterCommon } from "./AdapterConfig.ts"
import type { ConfigPath } from "./ConfigProblem.ts"
import { quote } from "./ConfigProblem.ts"
import { type ConfigTree, isRecord } from "./ConfigTree.ts"
import { choicesAt } from "./configShape.ts"
import { describeIssue } from "./describeIssue.ts"
import type { Findings } from "./Findings.ts"

/** The items of a list that are records, with their paths. */
export const recordsAt = (
  tree: ConfigTree,
  path: ConfigPath
): ReadonlyArray<{ readonly path: ConfigPath; readonly value: Record<string, unknown> }> => {
  const list = tree.get(path)
  if (!Array.isArray(list)) return []
  return list.flatMap((value: unknown, index) => (isRecord(value) ? [{ path: [...path, index], value }] : []))
}

/**
 * The text at a path, if there is one that may be shown: it did not come from a variable, and has no space, so that it
 * is not a name with the next line behind it (a token whose colon was forgotten).
 */
export const shownText = (tree: ConfigTree, path: ConfigPath): string | undefined => {
  const value = tree.get(path)
  return typeof value === "string" && /^[\p{L}\p{N}._:/@+-]{1,128}$/u.test(value) && !tree.mark(path).hidden
    ? value
    : undefined
}

/** `node "tower"`, or `nodes[2]` where it has no name that may be shown. */
export const nodeName = (tree: ConfigTree, path: ConfigPath): string => {
  const id = shownText(tree, [...path, "id"])
  return id === undefined ? `nodes[${path[1]}]` : `node ${quote(id)}`
}

const keyName = (tree: ConfigTree, path: ConfigPath): string => {
  const name = shownText(tree, [...path, "name"])
  return name === undefined ? `api_keys[${path[1]}]` : `api key ${quote(name)}`
}

/** Where a secret is: its path and the owner in words. */
interface Holder {
  readonly path: ConfigPath
  readonly owner: string
}

/** Characters below which a secret is doubted: some 80 bits of what `edge token` makes. */
const SHORT_SECRET = 16

const sources = { nodes: ["token", "token_file", "token_sha256"], api_keys: ["key", "key_file"] } as const

/** Ids, aliases and secrets of nodes; names and secrets of keys; adapters. */
export const checkNodes = (findings: Findings): void => {
  const { tree } = findings
  const nodes = recordsAt(tree, ["nodes"])
  const keys = recordsAt(tree, ["api_keys"])
  checkNames(
    findings,
    nodes.flatMap(({ path }) => [
      { path: [...path, "id"], record: path, word: "id" },
      ...(tree.has([...path, "alias"]) ? [{ path: [...path, "alias"], record: path, word: "alias" }] : [])
    ])
  )
  checkUnique(
    findings,
    keys.map(({ path }) => [...path, "name"]),
    "name of a key"
  )

  const holders = new Map<string, Holder>()
  for (const { path } of nodes) checkSecret(findings, holders, "nodes", path)
  for (const { path } of keys) checkSecret(findings, holders, "api_keys", path)

  checkAdapters(
    findings,
    nodes.map(({ path }) => path)
  )
  for (const { path, value } of nodes) {
    const { adapters } = value
    if (adapters === undefined || adapters === null || (Array.isArray(adapters) && adapters.length === 0)) {
      findings.warn(
        [...path, "adapters"],
        `${nodeName(tree, path)} has no adapters: it can join, but gets no run`,
        {
          onKey: true
        }
      )
    }
  }
  const list = tree.get(["nodes"])
  if (list === undefined || (Array.isArray(list) && list.length === 0)) {
    findings.warn(["nodes"], "no nodes: nothing can register, so no run can be served", { onKey: true })
  }
}

/** A name of a node, id or alias, means one node. */
const checkNames = (
  findings: Findings,
  names: ReadonlyArray<{ readonly path: ConfigPath; readonly record: ConfigPath; readonly word: string }>
): void => {
  const { tree } = findings
  const known = new Map<string, (typeof names)[number]>()
  // Ids first: an alias that clashes with an id is the alias's fault, wherever it stands.
  for (const name of names.toSorted((a, b) => (a.word === b.word ? 0 : a.word === "id" ? -1 : 1))) {
    const value = tree.get(name.path)
    if (typeof value !== "string" || value === "") continue
    const first = known.get(value)
    if (first === undefined) known.set(value, name)
    else if (first.record !== name.record) {
      const shown = shownText(tree, name.path)
      const already = `the ${first.word} of nodes[${first.record[1]}]${findings.line(first.path)}`
      const owner = name.word === "id" ? "" : ` of ${nodeName(tree, name.record)}`
      findings.add(
        name.path,
        `the ${name.word}${shown === undefined ? "" : ` ${quote(shown)}`}${owner} is already ${already}; a name means one node`
      )
    }
  }
}

const checkUnique = (findings: Findings, paths: ReadonlyArray<ConfigPath>, what: string): void => {
  const known = new Map<string, ConfigPath>()
  for (const path of paths) {
    const value = findings.tree.get(path)
    if (typeof value !== "string" || value === "") continue
    const first = known.get(value)
    if (first === undefined) known.set(value, path)
    else {
      const shown = shownText(findings.tree, path)
      findings.add(
        path,
        `${shown === undefined ? "this" : quote(shown)} is already the ${what} in line ${findings.tree.mark(first).line}`
      )
    }
  }
}

const checkSecret = (
  findings: Findings,
  holders: Map<string, Holder>,
  list: keyof typeof sources,
  record: ConfigPath
): void => {
  const { tree } = findings
  const names: ReadonlyArray<string> = sources[list]
  const word = names[0]!
  const owner = list === "nodes" ? nodeName(tree, record) : keyName(tree, record)
  const given = names.filter((name) => tree.has([...record, name]) && !tree.mark([...record, name]).read)
  if (given.length === 0) {
    findings.add([...record, word], `${owner} has no ${word}; give ${orList(names)}`, { onKey: true })
    return
  }
  const second = given[1]
  if (second !== undefined) {
    findings.add([...record, second], `${owner} has ${given.join(" and ")}; give one of them`, {
      onKey: true
    })
    return
  }
  const source = given[0]!
  const fromFile = source.endsWith("_file")
  // What was read from a file stands where it would be without one.
  const path = [...record, fromFile ? word : source]
  const secret = tree.get(path)
  const mark = tree.mark(path)
  const holder = list === "nodes" ? `the token of ${owner}` : owner
  if (secret === null && mark.blank) findings.add(path, `${holder} is empty`)
  if (typeof secret !== "string") return
  if (secret.trim() === "") {
    const from = fromFile ? [`its ${source}`] : mark.variables
    findings.add(path, `${holder} is empty${from.length === 0 ? "" : ` (from ${from.join(", ")})`}`)
    return
  }
  if (source !== "token_sha256" && secret.length < SHORT_SECRET) {
    findings.warn(
      path,
      `${holder} has fewer than ${SHORT_SECRET} characters and may be guessed; make one with: edge token`
    )
  }
  const digest =
    source === "token_sha256" ? secret.toLowerCase() : createHash("sha256").update(secret).digest("hex")
  const first = holders.get(digest)
  if (first === undefined) holders.set(digest, { path, owner })
  else {
    findings.add(
      path,
      `${owner}${findings.line(path)} has the same secret as ${first.owner}${findings.line(first.path)}; give each its own`
    )
  }
}

const orList = (words: ReadonlyArray<string>): string => `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`

const checkAdapters = (findings: Findings, nodes: ReadonlyArray<ConfigPath>): void => {
  const { tree } = findings
  const types = new Map<
    string,
    { readonly type: string; readonly node: ConfigPath; readonly path: ConfigPath }
  >()
  for (const node of nodes) {
    const own = new Map<string, ConfigPath>()
    for (const { path, value } of recordsAt(tree, [...node, "adapters"])) {
      checkCli(findings, path, value)
      checkCommon(findings, path)
      const { name } = value
      if (typeof name !== "string" || name === "") continue
      const namePath = [...path, "name"]
      const shown = shownText(tree, namePath)
      const label = shown === undefined ? "this name" : quote(shown)
      const twin = own.get(name)
      if (twin !== undefined) {
        findings.add(
          namePath,
          `${label} is already an adapter of ${nodeName(tree, node)}${findings.line(twin)}; give each its own name`
        )
        continue
      }
      own.set(name, namePath)
      const type = adapterKind(tree, path, value)
      if (type === undefined) continue
      const first = types.get(name)
      if (first === undefined) types.set(name, { type, node, path })
      else if (first.type !== type) {
        findings.add(
          [...path, "type"],
          `the adapter ${label} is ${type} on ${nodeName(tree, node)} but ${first.type} on ${nodeName(tree, first.node)}${findings.line(first.path)}; one name is one adapter`
        )
      }
    }
  }
}

/** The type, and for `custom` its kind, where both may be shown. */
const adapterKind = (
  tree: ConfigTree,
  path: ConfigPath,
  value: Record<string, unknown>
): string | undefined => {
  if (value.type !== "custom") return shownText(tree, [...path, "type"])
  const kind = shownText(tree, [...path, "kind"])
  return kind === undefined ? undefined : `custom (${kind})`
}

const decodeCommon = Schema.decodeUnknownExit(AdapterCommon, { errors: "all" })

/** Of an adapter whose type is unknown the schema says no more than that; what all types share is told as well. */
const checkCommon = (findings: Findings, path: ConfigPath): void => {
  const { tree } = findings
  const typePath = [...path, "type"]
  if (choicesAt(typePath).includes(String(tree.get(typePath)))) return
  const decoded = decodeCommon(tree.get(path))
  if (Exit.isSuccess(decoded)) return
  for (const reason of decoded.cause.reasons) {
    if (reason._tag !== "Fail" || !SchemaIssue.isIssue(reason.error.issue)) continue
    for (const { message, path: place, ...more } of describeIssue(reason.error.issue, tree, path)) {
      findings.add(place, message, more)
    }
  }
}

const checkCli = (findings: Findings, path: ConfigPath, value: Record<string, unknown>): void => {
  if (value.type !== "cli") return
  const profiles = recordsAt(findings.tree, [...path, "profiles"])
  if (value.command === undefined && value.profiles === undefined) {
    findings.add([...path, "command"], "a cli adapter needs command or profiles", { onKey: true })
  }
  checkUnique(
    findings,
    profiles.map((profile) => [...profile.path, "name"]),
    "name of a profile"
  )
  if (value.command !== undefined && profiles.length === 0 && !isFilledList(value.targets)) {
    findings.warn(
      [...path, "command"],
      "no targets: this command is never run; list at least one in targets",
      {
        onKey: true
      }
    )
  }
}

const isFilledList = (value: unknown): boolean => Array.isArray(value) && value.length > 0
