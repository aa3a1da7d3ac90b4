// The configuration of the links as plain numbers, for the code that runs per frame and per timer.
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { Duration } from "effect"

/** When a silent link is suspect and dead. */
export interface HeartbeatSettings {
  readonly intervalMs: number
  /** Silent intervals. */
  readonly suspectAfter: number
  /** Silent intervals. */
  readonly deadAfter: number
}

/** Durations in milliseconds, sizes in bytes. */
export interface LinkSettings {
  readonly edgeId: string
  readonly registerTimeoutMs: number
  readonly heartbeat: HeartbeatSettings
  readonly takeoverProbeMs: number
  readonly writeDeadlineMs: number
  readonly runWindowBytes: number
  readonly maxRegisterFrameBytes: number
  readonly maxNodeFrameBytes: number
  readonly maxEdgeFrameBytes: number
  readonly failedTokensPerMinute: number
  /** Connections that have not registered. */
  readonly maxUnregistered: number
}

/** What a power cut brings back at once, twice, and room for strangers. */
const UNREGISTERED_PER_NODE = 2
const UNREGISTERED_BASE = 256

export const linkSettings = (config: EdgeConfig): LinkSettings => ({
  edgeId: config.edge.id,
  registerTimeoutMs: Duration.toMillis(config.link.register_timeout),
  heartbeat: {
    intervalMs: Duration.toMillis(config.link.heartbeat_interval),
    suspectAfter: config.link.suspect_after,
    deadAfter: config.link.dead_after
  },
  takeoverProbeMs: Duration.toMillis(config.link.takeover_probe),
  writeDeadlineMs: Duration.toMillis(config.link.write_deadline),
  runWindowBytes: config.link.run_window,
  maxRegisterFrameBytes: config.link.max_register_frame,
  maxNodeFrameBytes: config.link.max_node_frame,
  maxEdgeFrameBytes: config.link.max_edge_frame,
  failedTokensPerMinute: config.link.failed_tokens_per_minute,
  maxUnregistered: UNREGISTERED_PER_NODE * config.nodes.length + UNREGISTERED_BASE
})
