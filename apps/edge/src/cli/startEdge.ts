// Starts the edge that a command's flags describe, inside this process.
import { Context, Effect, type FileSystem, Layer, Option, type Scope } from "effect"
import { connectionLimits, descriptorShortage } from "../bootstrap/descriptorLimit.ts"
import { EdgeApp } from "../bootstrap/EdgeApp.ts"
import { makeFakeNodes } from "../bootstrap/FakeNodes.ts"
import { edgeLogging, loadEdge } from "../bootstrap/loadEdge.ts"
import { whenRoutable } from "../bootstrap/whenRoutable.ts"
import { type CommandFailed, configFailed, usageError } from "./CommandFailed.ts"
import { type EdgeFlags, portsOf } from "./edgeFlags.ts"
import { VERSION } from "./version.ts"

export interface StartedEdge {
  readonly app: EdgeApp["Service"]
  readonly local: boolean
  readonly edgeId: string
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
  const fakes = yield* makeFakeNodes((id, how) => {
    process.stderr.write(`fake node ${id} ${how}\n`)
  })
  const logging = edgeLogging(config, quiet)
  const context = yield* Layer.build(EdgeApp.layer(config, VERSION).pipe(Layer.provideMerge(logging))).pipe(
    Effect.mapError((error) => usageError(error.message))
  )
  const app = Context.get(context, EdgeApp)
  if (localNodes.length === 0) return { app, local: flags.local, edgeId: config.edge.id, routable: false }
  yield* fakes.start(localNodes, app.addresses.nodes)
  const waited = yield* Effect.timeoutOption(whenRoutable(app.registry), ROUTABLE_WITHIN)
  return { app, local: true, edgeId: config.edge.id, routable: Option.isSome(waited) }
})
