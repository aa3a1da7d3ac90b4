// What `edge serve` says when it is up, on one screen: where it listens, who has joined, what to try.
import { networkInterfaces } from "node:os"
import { basename } from "node:path"
import type { NodeView } from "../../admin/NodeView.ts"
import type { StartedEdge } from "../startEdge.ts"
import { VERSION } from "../version.ts"
import { nodesTable } from "./printNodes.ts"

const origin = ({ host, port }: { readonly host: string; readonly port: number }): string => {
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host
  return name.includes(":") ? `http://[${name}]:${port}` : `http://${name}:${port}`
}

/** Addresses of this machine that are shown where it listens on all of them. */
const SHOWN_ADDRESSES = 3

/** What a node can dial: the address, or for a wildcard those that other machines reach this one by, IPv4 first. */
export const dialable = (
  { host, port }: { readonly host: string; readonly port: number },
  interfaces: ReturnType<typeof networkInterfaces>
): ReadonlyArray<string> => {
  if (host !== "0.0.0.0" && host !== "::") return [hostPort(host, port)]
  const own = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    // Link-local addresses need the name of an interface behind them.
    .filter(({ address, internal }) => !internal && !/^(fe80:|169\.254\.)/i.test(address))
    .filter(({ family }) => family === "IPv4" || host === "::")
    .sort((one, other) => (one.family === other.family ? 0 : one.family === "IPv4" ? -1 : 1))
    .map(({ address }) => hostPort(address, port))
  // A machine without a network reaches itself.
  return own.length === 0 ? [hostPort("127.0.0.1", port)] : own.slice(0, SHOWN_ADDRESSES)
}

const hostPort = (host: string, port: number): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`

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

export const startupScreen = (
  edge: Pick<StartedEdge, "app" | "local" | "edgeId" | "routable">,
  nodes: ReadonlyArray<NodeView>
): string => {
  const { addresses } = edge.app
  const http = origin(addresses.http)
  const ops = origin(addresses.ops)
  const connect = http === "http://127.0.0.1:7611" ? "" : ` --connect ${http}`
  const lines = [
    `edge ${VERSION} "${edge.edgeId}"`,
    "",
    `  nodes dial  ${dialable(addresses.nodes, networkInterfaces()).join("\n              ")}`,
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
