// Starts the edge that a command's flags describe, inside this process.
import { Context, Effect, type FileSystem, Layer, Option, type Scope } from "effect"
import { connectionLimits, descriptorShortage } from "../bootstrap/descriptorLimit.ts"
import { EdgeApp } from "../bootstrap/EdgeApp.ts"
import { makeFakeNodes } from "../bootstrap/FakeNodes.ts"
import { edgeLogging, loadEdge } from "../bootstrap/loadEdge.ts"
import { whenRoutable } from "../bootstrap/whenRoutable.ts"
import type { ListenError } from "../http/ListenError.ts"
import { type CommandFailed, configFailed, usageError } from "./CommandFailed.ts"
import { type EdgeFlags, portsOf } from "./edgeFlags.ts"
import { VERSION } from "./version.ts"

export interface StartedEdge {
  readonly app: EdgeApp["Service"]
  readonly local: boolean
  readonly edgeId: string
  /** Writes a line to the edge's log. */
  readonly info: (message: string, fields: Readonly<Record<string, unknown>>) => Effect.Effect<void>
  /** Whether every node of the local profile takes runs. Always false for a configuration file. */
  readonly routable: boolean
}

/** Fake nodes that are not there by then are not waited for any longer. */
const ROUTABLE_WITHIN = "10 seconds"

/**
 * Builds the edge in the scope. With the local profile its fake nodes are started and waited for.
 * `quiet`: only errors are logged, since a person talks with this terminal.
 */
export const startEdge = Effect.fnUntraced(function* (
  flags: EdgeFlags,
  quiet: boolean
): Effect.fn.Return<StartedEdge, CommandFailed, Scope.Scope | FileSystem.FileSystem> {
  if (flags.local === Option.isSome(flags.config)) {
    return yield* usageError("say which edge: --config FILE or --local")
  }
  const { config, localNodes, warnings } = yield* loadEdge(
    Option.getOrUndefined(flags.config),
    portsOf(flags)
  ).pipe(Effect.mapError((problems) => configFailed(problems.message)))
  const shortage = descriptorShortage(config.nodes.length, connectionLimits())
  for (const warning of [...warnings, ...(shortage === undefined ? [] : [shortage])]) {
    process.stderr.write(`${warning}\n`)
  }
  const logging = yield* Layer.build(edgeLogging(config, quiet))
  const log = Effect.runForkWith(logging)
  const fakes = yield* makeFakeNodes((id, how) => {
    log(Effect.logError("fake node ended; it stays away until the edge is started again", { node: id, how }))
  })
  const context = yield* Layer.build(EdgeApp.layer(config, VERSION)).pipe(
    Effect.provideContext(logging),
    Effect.mapError((error) => usageError(listenMistake(error, flags.config)))
  )
  const app = Context.get(context, EdgeApp)
  const info: StartedEdge["info"] = (message, fields) =>
    Effect.provideContext(Effect.logInfo(message, fields), logging)
  const started = { app, info, local: flags.local, edgeId: config.edge.id }
  if (localNodes.length === 0) return { ...started, routable: false }
  yield* fakes.start(localNodes, app.addresses.nodes)
  const waited = yield* Effect.timeoutOption(whenRoutable(app.registry), ROUTABLE_WITHIN)
  return { ...started, routable: Option.isSome(waited) }
})

const portFlags: Readonly<Record<string, string>> = {
  nodes: "--node-port",
  http: "--http-port",
  ops: "--ops-port"
}

/** What to do about a port that can't be had: where there is a file it says the port, else a flag does. */
const listenMistake = (error: ListenError, file: Option.Option<string>): string => {
  const flag = portFlags[error.listener]
  if (Option.isNone(file)) return error.anotherPort ? `${error.sentence} with ${flag}` : error.sentence
  return error.anotherPort
    ? `${error.message}: change listen.${error.listener}.port in ${file.value}, or give ${flag}`
    : error.message
}
