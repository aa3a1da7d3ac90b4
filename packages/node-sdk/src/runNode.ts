// A node process in one effect: what a `main.ts` calls after it has read an address and a token.

import { dialFrames, type TlsClientOptions } from "@iop/proto-socket/dialFrames"
import { Effect, Fiber, type Redacted } from "effect"
import type { Adapter } from "./Adapter.ts"
import { makeNodeAgent } from "./NodeAgent.ts"
import type { Dialer } from "./NodeConnection.ts"

/** Where the edge listens for nodes. */
export interface EdgeAddress {
  readonly host: string
  readonly port: number
  /** Absent: plain TCP. */
  readonly tls?: TlsClientOptions
}

/** See `runNode`. */
export interface RunNodeOptions {
  readonly edge: EdgeAddress
  /** The node's token. */
  readonly token: Redacted.Redacted<string>
  /** The kinds of adapters that the edge may configure here. */
  readonly adapters: ReadonlyArray<Adapter>
  /** Name and version of this software, for the edge's listings. */
  readonly agentName: string
  readonly agentVersion: string
  /** How long runs are held without a link, in milliseconds. Default 120,000. */
  readonly holdRunsMs?: number
  /** Stands between the node and its connections, for fault injection. */
  readonly wrapDialer?: (dialer: Dialer) => Dialer
}

/** How long written bytes may make no progress before a link is given up, in milliseconds. */
const WRITE_DEADLINE_MS = 30_000

/**
 * Runs a node for ever. When interrupted it drains: no new runs, those in flight end within the edge's drain
 * timeout, a goodbye. Never fails: an edge that is absent or refuses the node is tried again, and the log says why.
 */
export const runNode = (options: RunNodeOptions): Effect.Effect<never> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { edge, wrapDialer = (dialer: Dialer) => dialer } = options
      const dial: Dialer = (connection) =>
        dialFrames({
          host: edge.host,
          port: edge.port,
          writeDeadlineMs: WRITE_DEADLINE_MS,
          ...(edge.tls === undefined ? {} : { tls: edge.tls }),
          ...connection
        })
      const agent = yield* makeNodeAgent({
        dial: wrapDialer(dial),
        token: options.token,
        adapters: options.adapters,
        agentName: options.agentName,
        agentVersion: options.agentVersion,
        ...(options.holdRunsMs === undefined ? {} : { holdRunsMs: options.holdRunsMs })
      })
      const running = yield* Effect.forkChild(agent.run)
      return yield* Effect.onInterrupt(Fiber.join(running), () => agent.drain)
    })
  )
