// Frames from a node to the edge: how the edge reads them and how a node writes those that are not run events
// (`runEventWire.ts` has these). The bytes are one NodeFrame, without the length that goes before it on the wire.

import { create, type MessageInitShape } from "@bufbuild/protobuf"
import { type Goodbye, type GoodbyeCode, NodeFrameSchema } from "../gen/iop/v1/frame_pb.ts"
import { type RegisterRequest, RegisterRequestSchema } from "../gen/iop/v1/register_pb.ts"
import { type NodeStatus, NodeStatusSchema } from "../gen/iop/v1/status_pb.ts"
import { decodeMessage } from "./decodeMessage.ts"
import { decodeRunEventFrame } from "./decodeRunEvent.ts"
import { encodeMessage } from "./encodeMessage.ts"
import { encodeNumbers } from "./encodeNumbers.ts"
import { NODE_FRAME_BOUNDS } from "./limits.ts"
import type { NodeRunEvent } from "./RunEvent.ts"
import { runEventFromMessage } from "./runEventFromMessage.ts"
import { type ForeignNumbers, scanFrame } from "./scanFrame.ts"

/** The bodies of an EdgeFrame. */
const FOREIGN: ForeignNumbers = { from: 16, to: 31 }

/** The body of a NodeFrame. */
export type NodeFrameBody =
  | {
      readonly kind: "run_event"
      readonly handle: number
      readonly seq: number
      readonly event: NodeRunEvent
    }
  | { readonly kind: "register_request"; readonly value: RegisterRequest }
  | { readonly kind: "node_status"; readonly value: NodeStatus }
  | { readonly kind: "pong"; readonly nonce: number }
  | { readonly kind: "goodbye"; readonly value: Goodbye }
  /** No body, or one of a newer minor version: to be ignored and counted, except as the first frame. */
  | { readonly kind: "unknown" }
  /** A body that only the edge may send: malformed. */
  | { readonly kind: "wrong_direction" }

/** A frame from a node as the edge sees it. */
export type DecodedNodeFrame = NodeFrameBody & {
  /** Fields of a newer minor version that were left out. */
  readonly unknownFields: number
}

/**
 * Reads a frame from a node. Throws a `WireError` for bytes that break the protocol; the link has to end then.
 *
 * An event or delta of an unknown kind is an empty text delta, because its seq counts. Nothing in the result
 * points into `bytes`.
 */
export const decodeNodeFrame = (bytes: Uint8Array): DecodedNodeFrame => {
  const fast = decodeRunEventFrame(bytes)
  if (fast !== undefined) {
    return { kind: "run_event", handle: fast.handle, seq: fast.seq, event: fast.event, unknownFields: 0 }
  }
  const { unknownFields, foreign } = scanFrame(NodeFrameSchema, bytes, NODE_FRAME_BOUNDS, FOREIGN)
  if (foreign) return { kind: "wrong_direction", unknownFields }
  const { body } = decodeMessage(NodeFrameSchema, bytes)
  switch (body.case) {
    case "runEvent": {
      const { handle, seq } = body.value
      return { kind: "run_event", handle, seq, event: runEventFromMessage(body.value), unknownFields }
    }
    case "registerRequest":
      // A copy: the bytes are a window on the frame, which is a window on what the socket read.
      body.value.bootId = body.value.bootId.slice()
      return { kind: "register_request", value: body.value, unknownFields }
    case "nodeStatus":
      return { kind: "node_status", value: body.value, unknownFields }
    case "pong":
      return { kind: "pong", nonce: body.value.nonce, unknownFields }
    case "goodbye":
      return { kind: "goodbye", value: body.value, unknownFields }
    case undefined:
      return { kind: "unknown", unknownFields }
  }
}

/** The answer to a Ping. */
export const encodePong = (nonce: number): Uint8Array => encodeNumbers((3 << 3) | 2, nonce, 0)

/** The first frame of a node. Throws a `WireError` if it holds more than the edge takes. */
export const encodeRegisterRequest = (request: MessageInitShape<typeof RegisterRequestSchema>): Uint8Array =>
  encodeBody({ case: "registerRequest", value: create(RegisterRequestSchema, request) })

/** What a node says about itself. Throws a `WireError` if it has more adapters or targets than the edge takes. */
export const encodeNodeStatus = (status: MessageInitShape<typeof NodeStatusSchema>): Uint8Array =>
  encodeBody({ case: "nodeStatus", value: create(NodeStatusSchema, status) })

/** The last frame of a node. */
export const encodeNodeGoodbye = (code: GoodbyeCode, message: string): Uint8Array =>
  encodeBody({ case: "goodbye", value: { code, message } })

const encodeBody = (body: MessageInitShape<typeof NodeFrameSchema>["body"] & object): Uint8Array =>
  encodeMessage(NodeFrameSchema, create(NodeFrameSchema, { body }), NODE_FRAME_BOUNDS, FOREIGN)
