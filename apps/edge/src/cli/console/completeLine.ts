// Completion at the console: commands, then adapters, then the targets of the adapter.
import type { NodeView } from "../../admin/NodeView.ts"
import { consoleCommands } from "./consoleCommands.ts"

const unique = (names: ReadonlyArray<string>): Array<string> => [...new Set(names)].sort()

/** The adapters that nodes have. */
export const adapterNames = (nodes: ReadonlyArray<NodeView>): Array<string> =>
  unique(nodes.flatMap((node) => node.adapters.map((adapter) => adapter.name)))

/** The targets that nodes offer on an adapter. */
export const targetNames = (nodes: ReadonlyArray<NodeView>, adapter: string): Array<string> =>
  unique(
    nodes.flatMap((node) =>
      node.adapters
        .filter(({ name }) => name === adapter)
        .flatMap(({ targets }) => targets.map(({ name }) => name))
    )
  )

/** What the line may go on with, and the part of it that is replaced: the shape that node:readline wants. */
export const completeLine = (line: string, nodes: ReadonlyArray<NodeView>): [Array<string>, string] => {
  if (!line.startsWith("/")) return [[], line]
  const words = line.split(/\s+/)
  const last = words.at(-1) ?? ""
  const [command, adapter = ""] = words
  const fitting = (names: ReadonlyArray<string>): [Array<string>, string] => [
    names.filter((name) => name.startsWith(last)).map((name) => `${name} `),
    last
  ]
  if (words.length === 1) return fitting(consoleCommands.map(({ name }) => name))
  if (command !== "/use" && command !== "/explain") return [[], last]
  if (words.length === 2) return fitting(adapterNames(nodes))
  return words.length === 3 ? fitting(targetNames(nodes, adapter)) : [[], last]
}

/** Where prompts go when nobody has said: the first target of the first adapter that is ready. */
export const firstTarget = (
  nodes: ReadonlyArray<NodeView>
): { readonly adapter: string; readonly target: string } | undefined => {
  for (const node of nodes) {
    for (const adapter of node.adapters) {
      const [target] = adapter.targets
      if (node.state === "routable" && adapter.state === "ready" && target !== undefined) {
        return { adapter: adapter.name, target: target.name }
      }
    }
  }
  return undefined
}
