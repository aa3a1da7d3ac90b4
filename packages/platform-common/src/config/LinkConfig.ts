// The rules of the links between nodes and the edge.

import { Schema } from "effect"
import { byteSizeText } from "./ByteSizeText.ts"
import { DurationOrZeroText, DurationText } from "./DurationText.ts"
import * as Default from "./defaults.ts"
import { wholeNumber } from "./names.ts"
import { setting } from "./setting.ts"

/** The largest frame that the length prefix and the memory of a small machine allow for. */
const MAX_FRAME = 256 * 1024 * 1024

/** A node may have at least one frame's worth of events on its way, and never so much that it is memory on loan. */
const runWindow = byteSizeText(4 * 1024, 64 * 1024 * 1024)

export const LinkConfig = Schema.Struct({
  register_timeout: setting(
    DurationText,
    Default.REGISTER_TIMEOUT,
    "A new connection must register within this."
  ),
  heartbeat_interval: setting(DurationText, Default.HEARTBEAT_INTERVAL, "How often the edge pings a node."),
  suspect_after: setting(
    wholeNumber(1, 1000),
    Default.HEARTBEAT_SUSPECT_AFTER,
    "Silent intervals after which a node gets no new run."
  ),
  dead_after: setting(
    wholeNumber(1, 1000),
    Default.HEARTBEAT_DEAD_AFTER,
    "Silent intervals after which a link is ended; more than suspect_after."
  ),
  takeover_probe: setting(
    DurationText,
    Default.TAKEOVER_PROBE,
    "How long a node's present link may take to answer before a new one replaces it."
  ),
  write_deadline: setting(
    DurationText,
    Default.WRITE_DEADLINE,
    "A peer that takes no byte for this long is cut off."
  ),
  run_window: setting(runWindow, Default.RUN_WINDOW, "Unacknowledged output that one run may have."),
  max_register_frame: setting(
    byteSizeText(1024, 16 * 1024 * 1024),
    Default.MAX_REGISTER_FRAME,
    "The largest frame before a node is registered."
  ),
  max_node_frame: setting(
    byteSizeText(16 * 1024, MAX_FRAME),
    Default.MAX_NODE_FRAME,
    "The largest frame of a node."
  ),
  max_edge_frame: setting(
    byteSizeText(16 * 1024, MAX_FRAME),
    Default.MAX_EDGE_FRAME,
    "The largest frame of the edge; bounds a prompt."
  ),
  resume_grace: setting(
    DurationOrZeroText,
    Default.RESUME_GRACE,
    "How long runs wait for a lost node to come back; 0s: not at all."
  ),
  failed_tokens_per_minute: setting(
    wholeNumber(1, 1_000_000),
    Default.FAILED_TOKENS_PER_MINUTE,
    "Wrong tokens from one address before it is slowed down."
  )
}).annotate({ expected: "a map" })
export type LinkConfig = typeof LinkConfig.Type
