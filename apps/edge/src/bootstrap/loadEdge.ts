// The configuration of an edge to start, whatever it comes from, and the log that it asks for.
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { Effect, Layer, Logger, References } from "effect"
import { type LocalNode, type LocalPorts, localProfile } from "./localProfile.ts"

export interface LoadedEdge {
  readonly config: EdgeConfig
  /** The fake nodes to start; none for a configuration file. */
  readonly localNodes: ReadonlyArray<LocalNode>
  readonly logging: Layer.Layer<never>
}

export const loadEdge = (
  file: string | undefined,
  ports: LocalPorts,
  quiet: boolean
): Effect.Effect<LoadedEdge, Error> =>
  Effect.sync(() => {
    const { config, nodes } = localProfile(ports)
    const logging = Layer.mergeAll(
      Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)]),
      Layer.succeed(References.MinimumLogLevel, quiet ? "Error" : "Info")
    )
    return { config, localNodes: nodes, logging }
  })
