// What the transport counts. The transport knows no metrics library: whoever keeps figures implements this. Every
// argument that may become a label comes from a fixed set.

import type { WireErrorReason } from "@iop/platform-common/protocol/WireError"
import { Context } from "effect"

/** Why a connection was dropped before it could register. */
export type RefusalReason =
  /** More connections at once than the descriptors allow. */
  | "connection_limit"
  /** Made room for a newer one: too many connections that had not registered. */
  | "displaced"
  /** The edge was stopping. */
  | "stopping"
  /** The TLS handshake failed. */
  | "tls"

/** How an attempt to register ended. */
export type RegistrationOutcome =
  | "accepted"
  | "unknown_token"
  /** A wrong token from an address that had too many of them: not answered. */
  | "throttled"
  | "unsupported_version"
  | "already_connected"
  | "draining"
  | "malformed"
  /** The connection did not register in time. */
  | "timeout"
  /** The peer left before it had an answer. */
  | "abandoned"

/** Why a registered link ended. */
export type LinkEndReason =
  | "node_goodbye"
  | "node_closed"
  | "reset"
  | "truncated"
  | "protocol_error"
  | "heartbeat"
  | "replaced"
  | "taken_over"
  | "edge_shutdown"
  | "write_deadline"
  | "error"

/** Which rule of the protocol a peer broke. */
export type ProtocolErrorKind =
  | WireErrorReason
  | "frame_too_large"
  | "frame_empty"
  | "truncated"
  | "wrong_direction"
  /** Another frame than a RegisterRequest came first, or one came before the answer. */
  | "not_registered"
  | "second_register"
  | "chatty"
  | "stray_events"

/** Whose event a stray event is; see `StrayEvents`. */
export type StrayKind = "unknown" | "ended" | "forged"

/** What went over the links since it was last told. Bytes include the frames' headers. */
export interface Traffic {
  readonly framesIn: number
  readonly framesOut: number
  readonly bytesIn: number
  readonly bytesOut: number
}

export interface TransportMetrics {
  readonly connectionAccepted: () => void
  readonly connectionRefused: (reason: RefusalReason) => void
  readonly registration: (outcome: RegistrationOutcome) => void
  readonly linkEnded: (reason: LinkEndReason) => void
  readonly protocolError: (kind: ProtocolErrorKind) => void
  readonly strayEvent: (kind: StrayKind) => void
  /** A frame of a newer minor version, or without a body, was ignored. */
  readonly unknownBody: () => void
  /** Fields of a newer minor version were ignored. */
  readonly unknownFields: (count: number) => void
  readonly traffic: (traffic: Traffic) => void
}

const nothing = () => {}

/** The figures of the transport; without one nothing is counted. */
export const TransportMetrics = Context.Reference<TransportMetrics>("@iop/edge/transport/TransportMetrics", {
  defaultValue: () => ({
    connectionAccepted: nothing,
    connectionRefused: nothing,
    registration: nothing,
    linkEnded: nothing,
    protocolError: nothing,
    strayEvent: nothing,
    unknownBody: nothing,
    unknownFields: nothing,
    traffic: nothing
  })
})
