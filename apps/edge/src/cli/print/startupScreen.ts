// What `edge serve` says when it is up, on one screen: where it listens, who has joined, what to try.
import { basename } from "node:path"
import type { NodeView } from "../../admin/NodeView.ts"
import type { StartedEdge } from "../startEdge.ts"
import { VERSION } from "../version.ts"
import { nodesTable } from "./printNodes.ts"

const origin = ({ host, port }: { readonly host: string; readonly port: number }): string => {
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host
  return name.includes(":") ? `http://[${name}]:${port}` : `http://${name}:${port}`
}

/** How this very program is called: from the sources, by the scripts of its package; else from a bundle. */
const command = (words: string): string => {
  const [, program = ""] = process.argv
  if (program.endsWith(".ts")) {
    // `console` is a script of its own, which keeps the line within 80 columns.
    const script = words.startsWith("console ") ? "" : "edge "
    return `npx -y pnpm@12 --silent --filter edge ${script}${words}`
  }
  return `${program.endsWith(".js") ? `node ${program}` : basename(program)} ${words}`
}

export const startupScreen = (edge: StartedEdge, nodes: ReadonlyArray<NodeView>): string => {
  const { addresses } = edge.app
  const http = origin(addresses.http)
  const ops = origin(addresses.ops)
  const connect = http === "http://127.0.0.1:7611" ? "" : ` --connect ${http}`
  const lines = [
    `edge ${VERSION} "${edge.edgeId}"`,
    "",
    `  nodes dial  ${addresses.nodes.host}:${addresses.nodes.port}`,
    `  http        ${http}`,
    `  ops         ${ops}`,
    "",
    nodesTable(nodes)
  ]
  if (!edge.local) return lines.join("\n")
  return [
    ...lines,
    ...(edge.routable ? [] : ["", "Not all fake nodes have joined; they are still tried."]),
    "",
    "Try, in another terminal:",
    "",
    `  ${command(`console --connect ${http}`)}`,
    `  ${command(`nodes --json${connect}`)}`,
    `  curl -s ${ops}/metrics`,
    "",
    "Ctrl-C stops it."
  ].join("\n")
}
