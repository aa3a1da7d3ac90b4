// Nodes for people.
import type { NodeView } from "../../admin/NodeView.ts"
import { labelsInWords } from "./inWords.ts"
import { safeLine } from "./safeText.ts"
import { cut, table, terminalWidth } from "./table.ts"

const slots = (node: NodeView): string => {
  const total = node.slots_limit ?? node.adapters.reduce((sum, adapter) => sum + adapter.slots.total, 0)
  return `${node.slots_in_use}/${total}`
}

/** An adapter with its targets: `mock: answer, echo`. */
export const adapterInWords = (adapter: NodeView["adapters"][number]): string => {
  const targets = adapter.targets.map((target) => target.name)
  return targets.length === 0 ? adapter.name : `${adapter.name}: ${targets.join(", ")}`
}

/** The nodes as a table; a node that takes no runs has a line that says why. */
export const nodesTable = (nodes: ReadonlyArray<NodeView>): string => {
  if (nodes.length === 0) return "no nodes: the configuration has none"
  const rows = nodes.map((node) => [
    node.alias,
    node.state,
    slots(node),
    labelsInWords(node.labels),
    node.adapters.map(adapterInWords).join("; ")
  ])
  const lines = table(["NODE", "STATE", "SLOTS", "LABELS", "ADAPTERS"], rows).split("\n")
  const reasons = nodes.flatMap(notes)
  return [...lines, ...(reasons.length === 0 ? [] : ["", ...reasons])].join("\n")
}

const notes = (node: NodeView): ReadonlyArray<string> => {
  const width = terminalWidth()
  const lines = node.state === "routable" ? [] : [`${node.alias}: ${node.reason}`]
  for (const adapter of node.adapters) {
    if (node.state !== "offline" && adapter.state !== "ready" && adapter.reason !== "") {
      lines.push(`${node.alias}: adapter ${adapter.name} is ${adapter.state}: ${adapter.reason}`)
    }
    if (adapter.circuit.state !== "closed") {
      lines.push(
        `${node.alias}: adapter ${adapter.name} failed fast too often: ${adapter.circuit.reason ?? "no reason given"}`
      )
    }
  }
  return lines.map((line) => cut(safeLine(line), width))
}
