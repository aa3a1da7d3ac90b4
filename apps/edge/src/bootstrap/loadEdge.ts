// The configuration of an edge to start, whatever it comes from, and the log that it asks for.

import type { ConfigProblems } from "@iop/platform-common/config/ConfigProblem"
import { formatProblem } from "@iop/platform-common/config/ConfigProblem"
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { loadConfig } from "@iop/platform-common/config/loadConfig"
import { loggingLayer } from "@iop/platform-common/observability/Logging"
import { Effect, type FileSystem, type Layer } from "effect"
import { type LocalNode, type LocalPorts, localProfile } from "./localProfile.ts"

export interface LoadedEdge {
  readonly config: EdgeConfig
  /** The fake nodes to start; none for a configuration file. */
  readonly localNodes: ReadonlyArray<LocalNode>
  /** What a person should know before it starts, one sentence each. */
  readonly warnings: ReadonlyArray<string>
}

/** Loads the file, or makes the local profile when there is none. Ports win over the file's. */
export const loadEdge = (
  file: string | undefined,
  ports: LocalPorts
): Effect.Effect<LoadedEdge, ConfigProblems, FileSystem.FileSystem> => {
  if (file === undefined) {
    return Effect.sync(() => {
      const { config, nodes } = localProfile(ports)
      return { config, localNodes: nodes, warnings: [] }
    })
  }
  const overrides = Object.fromEntries(
    Object.entries(ports).map(([listener, port]) => [`listen.${listener}.port`, String(port)])
  )
  return Effect.map(loadConfig(file, { overrides }), ({ config, warnings }) => ({
    config,
    localNodes: [],
    warnings: warnings.map(formatProblem)
  }))
}

/** The log of a configuration, on stderr. `quiet`: errors alone, since a person talks with this terminal. */
export const edgeLogging = ({ log }: Pick<EdgeConfig, "log">, quiet: boolean): Layer.Layer<never> =>
  loggingLayer({ level: quiet ? "error" : log.level, format: log.format })
