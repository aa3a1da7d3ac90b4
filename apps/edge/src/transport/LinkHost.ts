// What links and sessions share: the edge's services, its settings and the tables that span connections.
import type { NodeConfigs } from "../node/NodeConfigs.ts"
import type { NodeRegistry } from "../node/NodeRegistry.ts"
import type { NodeStore } from "../node/NodeStore.ts"
import type { Timers } from "../node/Timers.ts"
import type { RunService } from "../run/RunService.ts"
import type { Handles } from "./Handles.ts"
import type { LinkSettings } from "./LinkSettings.ts"
import type { NodeSession } from "./NodeSession.ts"
import type { RegisteredLink } from "./RegisteredLink.ts"
import type { Takeovers } from "./Takeovers.ts"
import type { TokenThrottle } from "./TokenThrottle.ts"
import type { TransportLog } from "./TransportLog.ts"
import type { TransportMetrics } from "./TransportMetrics.ts"
import type { UnregisteredLimit } from "./UnregisteredLimit.ts"

export interface LinkHost {
  readonly settings: LinkSettings
  readonly store: NodeStore["Service"]
  readonly configs: NodeConfigs["Service"]
  readonly registry: NodeRegistry["Service"]
  readonly runs: RunService["Service"]
  readonly timers: Timers["Service"]
  readonly metrics: TransportMetrics
  readonly log: TransportLog
  readonly handles: Handles<RegisteredLink>
  readonly throttle: TokenThrottle
  readonly unregistered: UnregisteredLimit<NodeSession>
  readonly takeovers: Takeovers
  /** Every open connection. */
  readonly sessions: Set<NodeSession>
  /** The registered links by node id. */
  readonly links: Map<string, RegisteredLink>
  /** Whether new registrations are turned away. */
  draining: boolean
  /** The epoch of the next link. */
  nextEpoch: number
}
