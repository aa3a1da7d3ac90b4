// Rules within and between sections: who may listen where without keys, figures that make no sense together.

import { Exit, Schema } from "effect"
import type { ConfigPath } from "./ConfigProblem.ts"
import { EdgeConfig } from "./EdgeConfig.ts"
import type { Findings } from "./Findings.ts"
import { isLoopback } from "./isLoopback.ts"

/** Sections one by one, so that a fault in one keeps the rules of the others going. */
const decodeSection = <Name extends "listen" | "link" | "http" | "runs">(
  findings: Findings,
  name: Name
): EdgeConfig[Name] | undefined => {
  const value = findings.tree.get([name])
  const decoded = Schema.decodeUnknownExit(EdgeConfig)(value === undefined ? {} : { [name]: value })
  return Exit.isSuccess(decoded) ? decoded.value[name] : undefined
}

export const checkSections = (findings: Findings): void => {
  checkListeners(findings)
  const link = decodeSection(findings, "link")
  const http = decodeSection(findings, "http")
  if (link !== undefined && link.suspect_after >= link.dead_after) {
    findings.add(
      nearestGiven(findings, ["link", "suspect_after"], ["link", "dead_after"]),
      `suspect_after (${link.suspect_after}) must be less than dead_after (${link.dead_after})`
    )
  }
  if (link !== undefined && link.max_register_frame > link.max_node_frame) {
    findings.add(
      nearestGiven(findings, ["link", "max_register_frame"], ["link", "max_node_frame"]),
      "max_register_frame must not be more than max_node_frame"
    )
  }
  if (link !== undefined && http !== undefined && http.max_body > link.max_edge_frame) {
    findings.warn(
      nearestGiven(findings, ["http", "max_body"], ["link", "max_edge_frame"]),
      "http.max_body is more than link.max_edge_frame: the largest requests are accepted but fit into no frame to a node"
    )
  }
}

/** The first of two paths that the file has; a default is nobody's fault. */
const nearestGiven = (findings: Findings, first: ConfigPath, second: ConfigPath): ConfigPath =>
  findings.tree.has(first) ? first : second

const checkListeners = (findings: Findings): void => {
  const listen = decodeSection(findings, "listen")
  if (listen === undefined) return
  const { tree } = findings
  const keys = tree.get(["api_keys"])
  const open = !Array.isArray(keys) || keys.length === 0
  for (const name of ["http", "ops"] as const) {
    const listener = listen[name]
    if (open && !listener.insecure && !isLoopback(listener.host)) {
      findings.add(
        ["listen", name, "host"],
        `listens beyond this machine, but there are no api_keys: whoever reaches it may use it; add api_keys, listen on 127.0.0.1, or say insecure: true`
      )
    }
  }
  if (listen.nodes.tls === undefined && !isLoopback(listen.nodes.host)) {
    findings.warn(
      ["listen", "nodes", "host"],
      "listens beyond this machine without tls: tokens and prompts travel in the clear; set listen.nodes.tls, or see to it that the network is yours alone"
    )
  }
  const names = ["nodes", "http", "ops"] as const
  for (const [index, name] of names.entries()) {
    const { host, port } = listen[name]
    const twin = names
      .slice(0, index)
      .find((other) => port !== 0 && listen[other].port === port && overlap(listen[other].host, host))
    if (twin !== undefined) {
      findings.add(
        ["listen", name, "port"],
        `port ${port} is already the port of listen.${twin}; give each its own`
      )
    }
  }
}

const overlap = (a: string, b: string): boolean =>
  a === b || [a, b].some((host) => host === "0.0.0.0" || host === "::") || (isLoopback(a) && isLoopback(b))
