// The ways in which a link can end, in the words of each side: the protocol's, the run's, the metrics' and a person's.
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import type { CloseReason } from "@iop/proto-socket/CloseReason"
import type { LinkEnd } from "../node/NodeLink.ts"
import type { LinkEndReason, ProtocolErrorKind } from "./TransportMetrics.ts"

/** What ending a link for a reason means. */
export interface EndRule {
  readonly goodbye: GoodbyeCode
  readonly metric: LinkEndReason
  /** Whether the same process may come back and go on with its runs. */
  readonly mayResume: boolean
}

export const endRules: Readonly<Record<LinkEnd, EndRule>> = {
  shutdown: { goodbye: GoodbyeCode.SHUTDOWN, metric: "edge_shutdown", mayResume: false },
  replaced: { goodbye: GoodbyeCode.REPLACED, metric: "replaced", mayResume: true },
  protocol_error: { goodbye: GoodbyeCode.PROTOCOL_ERROR, metric: "protocol_error", mayResume: true },
  heartbeat: { goodbye: GoodbyeCode.HEARTBEAT, metric: "heartbeat", mayResume: true },
  taken_over: { goodbye: GoodbyeCode.TAKEN_OVER, metric: "taken_over", mayResume: false }
}

/** Why a connection that the edge did not end is over. */
export interface ConnectionLoss {
  readonly metric: LinkEndReason
  /** For a person: reset, closed by the node, … */
  readonly reason: string
  /** Set when the peer broke a rule of the framing. */
  readonly protocolError?: ProtocolErrorKind
}

export const connectionLoss = (close: CloseReason): ConnectionLoss => {
  switch (close.tag) {
    case "ended":
      return { metric: "node_closed", reason: "closed by the node" }
    case "reset":
      return { metric: "reset", reason: "reset" }
    case "truncated":
      return { metric: "truncated", reason: "closed by the node inside a frame", protocolError: "truncated" }
    case "frame_too_large":
    case "frame_empty":
      return { metric: "protocol_error", reason: close.message, protocolError: close.tag }
    case "write_deadline":
      return { metric: "write_deadline", reason: close.message }
    case "error":
    case "local":
      return { metric: "error", reason: close.message }
  }
}
