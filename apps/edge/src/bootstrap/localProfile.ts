// The built-in profile behind `--local`: an edge on loopback with two fake nodes, so that a run streams a minute after
// the repository was cloned. Tokens are made anew at each start and never leave this machine.
import { randomBytes } from "node:crypto"
import { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { Schema } from "effect"

/** A fake node of the profile. */
export interface LocalNode {
  readonly id: string
  readonly token: string
}

export interface LocalProfile {
  readonly config: EdgeConfig
  readonly nodes: ReadonlyArray<LocalNode>
}

/** Ports of the three listeners; absent: the usual ones; 0: any free one. */
export interface LocalPorts {
  readonly nodes?: number
  readonly http?: number
  readonly ops?: number
}

const LOOPBACK = "127.0.0.1"
const decodeConfig = Schema.decodeUnknownSync(EdgeConfig)

/** `logLevel`: as in the configuration file. */
export const localProfile = (ports: LocalPorts, logLevel: "info" | "error" = "info"): LocalProfile => {
  const listen = (port: number | undefined) => ({ host: LOOPBACK, ...(port === undefined ? {} : { port }) })
  const node = (id: string, tier: string, slots: number) => ({
    id,
    alias: id,
    token: randomBytes(32).toString("base64url"),
    labels: { tier },
    adapters: [{ name: "mock", type: "mock", slots }]
  })
  const nodes = [node("fake-a", "fast", 4), node("fake-b", "slow", 2)]
  return {
    config: decodeConfig({
      edge: { id: "local" },
      listen: { nodes: listen(ports.nodes), http: listen(ports.http), ops: listen(ports.ops) },
      nodes,
      log: { level: logLevel }
    }),
    nodes
  }
}
