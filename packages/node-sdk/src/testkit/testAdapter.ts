// Runs one adapter under a whole node and a scripted edge, in memory: what an author's tests need to see what really
// goes over the link for a run.

import type { MessageInitShape } from "@bufbuild/protobuf"
import type { AdapterConfigSchema } from "@iop/platform-common/gen/iop/v1/node_config_pb"
import type { NodeStatus } from "@iop/platform-common/gen/iop/v1/status_pb"
import { Effect, Redacted, type Scope } from "effect"
import type { Adapter } from "../Adapter.ts"
import { makeNodeAgent } from "../NodeAgent.ts"
import type { ScriptedLink, ScriptedRunFields } from "./ScriptedLink.ts"
import type { ScriptedRun } from "./ScriptedRun.ts"
import { memoryEdge } from "./scriptedEdge.ts"

/** An adapter under test. */
export interface AdapterBench {
  /** The node's link, for everything that `run` does not do: acks, cancels, drains. */
  readonly link: ScriptedLink
  /** The status that the node reported first. */
  readonly status: NodeStatus
  /** Gives the adapter a run. */
  readonly run: (fields: Omit<ScriptedRunFields, "adapter">) => ScriptedRun
}

/** The configuration of the adapter under test, without its name; `settings` as in the protocol's AdapterConfig. */
export type BenchConfig = Omit<MessageInitShape<typeof AdapterConfigSchema>, "name" | "$typeName">

/**
 * Starts the adapter. The default configuration has four slots and, for a kind of your own, no settings. Timers run on
 * the clock of the test; the adapter stops with the scope.
 */
export const testAdapter = (
  adapter: Adapter,
  config: BenchConfig = {}
): Effect.Effect<AdapterBench, never, Scope.Scope> =>
  Effect.gen(function* () {
    const edge = memoryEdge()
    const agent = yield* makeNodeAgent({
      dial: edge.dial,
      token: Redacted.make("token-of-the-test"),
      adapters: [adapter],
      agentName: "adapter-test",
      agentVersion: "0.0.0"
    })
    yield* Effect.forkScoped(agent.run)
    const link = yield* edge.link
    yield* link.accept({
      config: {
        adapters: [
          {
            slots: 4,
            settings: { case: "custom", value: { kind: adapter.kind } },
            ...config,
            name: adapter.kind
          }
        ]
      }
    })
    const status = yield* link.status
    return { link, status, run: (fields) => link.run({ ...fields, adapter: adapter.kind }) }
  })
