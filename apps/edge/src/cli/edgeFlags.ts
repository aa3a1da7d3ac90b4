// How a command says which edge it starts: a configuration file or the built-in profile, and the ports.
import { Option } from "effect"
import { Flag } from "effect/cli"
import type { LocalPorts } from "../bootstrap/localProfile.ts"
import { wholeNumberFlag } from "./plainFlags.ts"

const portFlag = (name: string, what: string) =>
  wholeNumberFlag(name, { what: "port", minimum: 0, maximum: 65_535 }).pipe(
    Flag.withMetavar("PORT"),
    Flag.withDescription(`port for ${what} instead of the configured one; 0: any free one`),
    Flag.optional
  )

export const edgeFlags = {
  config: Flag.String("config").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription("the configuration file"),
    Flag.optional
  ),
  local: Flag.Boolean("local").pipe(
    Flag.withDescription("a built-in profile on this machine alone, with two fake nodes"),
    Flag.withDefault(false)
  ),
  nodePort: portFlag("node-port", "nodes"),
  httpPort: portFlag("http-port", "the HTTP API"),
  opsPort: portFlag("ops-port", "metrics and health")
}

export interface EdgeFlags {
  readonly config: Option.Option<string>
  readonly local: boolean
  readonly nodePort: Option.Option<number>
  readonly httpPort: Option.Option<number>
  readonly opsPort: Option.Option<number>
}

export const portsOf = (flags: EdgeFlags): LocalPorts => ({
  ...(Option.isSome(flags.nodePort) ? { nodes: flags.nodePort.value } : {}),
  ...(Option.isSome(flags.httpPort) ? { http: flags.httpPort.value } : {}),
  ...(Option.isSome(flags.opsPort) ? { ops: flags.opsPort.value } : {})
})
