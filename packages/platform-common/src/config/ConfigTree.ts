// The plain values of a configuration with the place of each: aliases expanded within bounds, variables filled in,
// duplicate keys found. What a value was made of is remembered, so that a message can point at it without showing it.

import { isAlias, isMap, isScalar, isSeq, type ParsedNode } from "yaml"
import { type ConfigPath, formatPath } from "./ConfigProblem.ts"
import { leafKindAt } from "./configShape.ts"
import { MAX_CONFIG_DEPTH, type TextPlace, type YamlText } from "./readYaml.ts"
import { substitute } from "./substitute.ts"

/** Values that aliases may multiply a file to. */
const MAX_VALUES = 100_000

/** What is known about the value at a path. */
export interface ConfigMark extends TextPlace {
  /** Where its key is; the value itself for items of a list. */
  readonly key: TextPlace
  /** Whether the value came from a variable, a file or an override: it is never shown. */
  readonly hidden: boolean
  readonly variables: ReadonlyArray<string>
  /** What the value came from, where that is not the file. */
  readonly origin?: string
  /** Whether the file has nothing at all in the value's place. */
  readonly blank: boolean
  /** Whether the value was read from a file that the configuration names. */
  readonly read: boolean
}

export interface TreeProblem {
  readonly path: ConfigPath
  readonly place: TextPlace
  readonly message: string
}

const start: ConfigMark = {
  line: 1,
  column: 1,
  key: { line: 1, column: 1 },
  hidden: false,
  variables: [],
  blank: false,
  read: false
}

/** Values and their marks. Mutable while it is being prepared, by `set` alone. */
export class ConfigTree {
  value: unknown
  /** Whether the conversion was given up; the values are then of no use. */
  tooLarge = false
  readonly problems: Array<TreeProblem> = []
  private readonly marks = new Map<string, ConfigMark>()

  constructor(value: unknown) {
    this.value = value
  }

  /** The tree of a document. Problems: duplicate keys, keys that are no text, bad aliases, unset variables. */
  static fromYaml(yaml: YamlText, env: Readonly<Record<string, string | undefined>>): ConfigTree {
    const tree = new ConfigTree(undefined)
    const anchors = new Map<string, ParsedNode>()
    const open = new Set<ParsedNode>()
    let values = 0

    const problem = (path: ConfigPath, place: TextPlace, message: string) =>
      tree.problems.push({ path, place, message })

    const placeOf = (node: ParsedNode | null, fallback: TextPlace): TextPlace =>
      node?.range == null ? fallback : yaml.placeOf(node.range[0])

    const convert = (node: ParsedNode | null, path: ConfigPath, key: TextPlace): unknown => {
      if (tree.tooLarge || ++values > MAX_VALUES || path.length > MAX_CONFIG_DEPTH) {
        if (!tree.tooLarge) problem(path.slice(0, 3), key, "aliases make this too large; write fewer of them")
        tree.tooLarge = true
        return null
      }
      const place = placeOf(node, key)
      const mark = (more: Partial<ConfigMark>) =>
        tree.marks.set(formatPath(path), { ...start, ...place, key, ...more })
      if (node === null) {
        mark({ blank: true })
        return null
      }
      if (isAlias(node)) {
        const target = anchors.get(node.source)
        if (target === undefined || open.has(target)) {
          problem(path, place, "an alias (*name) needs an anchor (&name) further up, outside of itself")
          return null
        }
        return convert(target, path, key)
      }
      if (node.anchor !== undefined) anchors.set(node.anchor, node)
      if (isScalar(node)) return scalar(node.value, node.source ?? "", path, place, mark)
      open.add(node)
      mark({})
      const value = isSeq(node)
        ? list(node.items as ReadonlyArray<ParsedNode>, path, place)
        : map(node, path, place)
      open.delete(node)
      return value
    }

    const scalar = (
      value: unknown,
      source: string,
      path: ConfigPath,
      place: TextPlace,
      mark: (more: Partial<ConfigMark>) => void
    ): unknown => {
      if (typeof value !== "string") {
        mark({ blank: value === null && source === "" })
        return value
      }
      const { problems, text, variables } = substitute(value, env, leafKindAt(path) === "secret")
      for (const message of problems) problem(path, place, message)
      mark({ hidden: variables.length > 0 || problems.length > 0, variables })
      return text
    }

    const list = (items: ReadonlyArray<ParsedNode>, path: ConfigPath, place: TextPlace): Array<unknown> =>
      items.map((item, index) => convert(item, [...path, index], placeOf(item, place)))

    const map = (node: ParsedNode, path: ConfigPath, place: TextPlace): Record<string, unknown> => {
      const value: Record<string, unknown> = {}
      if (!isMap<ParsedNode, ParsedNode | null>(node)) return value
      const seen = new Map<string, number>()
      for (const pair of node.items) {
        const at = placeOf(pair.key, place)
        const key = isScalar(pair.key) ? pair.key.value : undefined
        if (typeof key !== "string") {
          problem(path, at, "YAML does not read this key as a text; quote it")
        } else if (key === "__proto__") {
          problem([...path, key], at, "this key cannot be used")
        } else if (seen.has(key)) {
          problem([...path, key], at, `this key is given twice, first in line ${seen.get(key)}`)
        } else {
          seen.set(key, at.line)
          value[key] = convert(pair.value, [...path, key], at)
        }
      }
      return value
    }

    tree.value = convert(yaml.contents, [], { line: 1, column: 1 })
    return tree
  }

  /** The mark of a value, or of the nearest record around the place where it would be. */
  mark(path: ConfigPath): ConfigMark {
    for (let length = path.length; length >= 0; length--) {
      const mark = this.marks.get(formatPath(path.slice(0, length)))
      if (mark !== undefined) return mark
    }
    return start
  }

  /** Whether the file, or an override, has something at the path. */
  has(path: ConfigPath): boolean {
    return this.marks.has(formatPath(path))
  }

  /** The value at a path, if all on the way are records and lists. */
  get(path: ConfigPath): unknown {
    let value = this.value
    for (const part of path) {
      if (typeof part === "number" ? !Array.isArray(value) : !isRecord(value)) return undefined
      value = Object.hasOwn(value as object, part)
        ? (value as Record<string | number, unknown>)[part]
        : undefined
    }
    return value
  }

  /** Puts a value at a path; records on the way are made. Does nothing where something else is in the way. */
  set(path: ConfigPath, value: unknown, mark: Partial<ConfigMark>): void {
    if (!isRecord(this.value)) {
      if (this.value !== null && this.value !== undefined) return
      this.value = {}
    }
    let parent = this.value as Record<string | number, unknown>
    for (const part of path.slice(0, -1)) {
      const next = parent[part]
      if (typeof next === "object" && next !== null) parent = next as Record<string | number, unknown>
      else if (next === undefined || next === null) {
        parent[part] = {}
        parent = parent[part] as Record<string | number, unknown>
      } else return
    }
    const last = path.at(-1)
    if (last === undefined) return
    const around = this.mark(path)
    parent[last] = value
    this.marks.set(formatPath(path), { ...around, ...mark })
  }
}

/** Whether a value is a map of keys. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
