// Frames from the edge to a node: how the edge writes them and how a node reads them. The bytes are one EdgeFrame,
// without the length that goes before it on the wire.

import { create, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf"
import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire"
import { EdgeFrameSchema, type Goodbye, type GoodbyeCode } from "../gen/iop/v1/frame_pb.ts"
import {
  RegisterAcceptedSchema,
  RegisterRejectedSchema,
  type RegisterResponse
} from "../gen/iop/v1/register_pb.ts"
import type { RunInput } from "../gen/iop/v1/run_input_pb.ts"
import { type CancelCode, type RunRequest, RunRequestSchema } from "../gen/iop/v1/run_pb.ts"
import { decodeMessage } from "./decodeMessage.ts"
import { encodeMessage } from "./encodeMessage.ts"
import { encodeNumbers } from "./encodeNumbers.ts"
import { EDGE_FRAME_BOUNDS, MAX_MESSAGE_LENGTH } from "./limits.ts"
import { cut } from "./runEventParts.ts"
import { type ForeignNumbers, scanFrame } from "./scanFrame.ts"
import { WireError } from "./WireError.ts"

/** The bodies of a NodeFrame. */
const FOREIGN: ForeignNumbers = { from: 1, to: 15 }

/** A run as the edge gives it to a node. */
export interface RunRequestFields {
  readonly runId: string
  /** From 1. */
  readonly attempt: number
  /** Names the run on its link; never used twice there. */
  readonly handle: number
  readonly adapter: string
  readonly target: string
  readonly input: RunInput
  /** Whether the consumer streams. */
  readonly stream: boolean
  /** Empty: none. */
  readonly session: string
  /** Milliseconds; 0: no limit. */
  readonly deadlineMs: number
  /** Empty: not traced. */
  readonly traceparent: string
}

/** The body of an EdgeFrame. */
export type EdgeFrameBody =
  | { readonly kind: "register_response"; readonly value: RegisterResponse }
  | { readonly kind: "ping"; readonly nonce: number }
  | { readonly kind: "run_request"; readonly value: RunRequest }
  | { readonly kind: "run_ack"; readonly handle: number; readonly seq: number }
  | {
      readonly kind: "run_cancel"
      readonly handle: number
      readonly code: CancelCode
      readonly reason: string
    }
  | { readonly kind: "drain"; readonly timeoutMs: number; readonly reason: string }
  | { readonly kind: "goodbye"; readonly value: Goodbye }
  /** No body, or one of a newer minor version: to be ignored. */
  | { readonly kind: "unknown" }
  /** A body that only a node may send: malformed. */
  | { readonly kind: "wrong_direction" }

/** A frame from the edge as a node sees it. */
export type DecodedEdgeFrame = EdgeFrameBody & {
  /** Fields of a newer minor version that were left out. */
  readonly unknownFields: number
}

/**
 * Reads a frame from the edge. Throws a `WireError` for bytes that break the protocol; the link has to end then.
 * Bytes of images, audio and files in the result are windows on `bytes`.
 */
export const decodeEdgeFrame = (bytes: Uint8Array): DecodedEdgeFrame => {
  const ack = decodeAck(bytes)
  if (ack !== undefined) return ack
  const { unknownFields, foreign } = scanFrame(EdgeFrameSchema, bytes, EDGE_FRAME_BOUNDS, FOREIGN)
  if (foreign) return { kind: "wrong_direction", unknownFields }
  const { body } = decodeMessage(EdgeFrameSchema, bytes)
  switch (body.case) {
    case "registerResponse":
      return { kind: "register_response", value: body.value, unknownFields }
    case "ping":
      return { kind: "ping", nonce: body.value.nonce, unknownFields }
    case "runRequest":
      return { kind: "run_request", value: body.value, unknownFields }
    case "runAck":
      return { kind: "run_ack", handle: body.value.handle, seq: body.value.seq, unknownFields }
    case "runCancel": {
      const { handle, code, reason } = body.value
      return { kind: "run_cancel", handle, code, reason, unknownFields }
    }
    case "drain":
      return { kind: "drain", timeoutMs: body.value.timeoutMs, reason: body.value.reason, unknownFields }
    case "goodbye":
      return { kind: "goodbye", value: body.value, unknownFields }
    case undefined:
      return { kind: "unknown", unknownFields }
  }
}

// Two-byte tag of the envelope's field 19, then the length, then `08 handle 10 seq`.
const ACK_TAG_LOW = (((19 << 3) | 2) & 0x7f) | 0x80
const ACK_TAG_HIGH = 19 >> 4

/** The one frequent frame of this direction, read without a message object; undefined for all others. */
const decodeAck = (bytes: Uint8Array): DecodedEdgeFrame | undefined => {
  const body = bytes.length - 3
  if (body < 4 || bytes[0] !== ACK_TAG_LOW || bytes[1] !== ACK_TAG_HIGH || bytes[2] !== body) return undefined
  try {
    const reader = new BinaryReader(bytes)
    reader.pos = 4
    if (bytes[3] !== 1 << 3) return undefined
    const handle = reader.uint32()
    if (bytes[reader.pos++] !== 2 << 3) return undefined
    const seq = reader.uint32()
    return reader.pos === bytes.length ? { kind: "run_ack", handle, seq, unknownFields: 0 } : undefined
  } catch {
    // What is wrong with it is said in one place, the slow way.
    return undefined
  }
}

/** Asks whether the node is there. */
export const encodePing = (nonce: number): Uint8Array => encodeNumbers((17 << 3) | 2, nonce, 0)

/** Acknowledges all events of a run up to `seq`. */
export const encodeAck = (handle: number, seq: number): Uint8Array =>
  encodeNumbers((19 << 3) | 2, handle, seq)

/** Stops a run. A reason longer than `MAX_MESSAGE_LENGTH` is cut. */
export const encodeCancel = (handle: number, code: CancelCode, reason: string): Uint8Array => {
  const writer = new BinaryWriter().uint32((20 << 3) | 2).fork()
  if (handle !== 0) writer.uint32(1 << 3).uint32(handle)
  if (code !== 0) writer.uint32(2 << 3).int32(code)
  if (reason !== "") writer.uint32((3 << 3) | 2).string(cut(reason, MAX_MESSAGE_LENGTH))
  return writer.join().finish()
}

/**
 * Gives a run to a node. Throws a `WireError` if its input nests more deeply or holds more than a node takes; that
 * is the caller's mistake and must fail the run, not the link.
 */
export const encodeRunRequest = (run: RunRequestFields): Uint8Array => {
  checkJson(jsonOf(run.input))
  return encodeBody({ case: "runRequest", value: create(RunRequestSchema, run) })
}

/** The JSON values that a caller put into the input. */
const jsonOf = ({ kind, parameters }: RunInput): Array<JsonValue> => {
  const values: Array<JsonValue> = parameters === undefined ? [] : [parameters]
  if (kind.case === "chat") {
    for (const tool of kind.value.tools) {
      if (tool.kind.case === "custom" && tool.kind.value.definition !== undefined) {
        values.push(tool.kind.value.definition)
      }
    }
  }
  return values
}

/**
 * Counts the messages that JSON values become, before they become any: writing millions of them only to refuse the
 * frame would hold everybody up. The list, instead of the stack, bears any depth.
 */
const checkJson = (left: Array<JsonValue>): void => {
  let messages = 0
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (typeof value !== "object" || value === null) continue
    const members = Array.isArray(value) ? value : Object.values(value)
    messages += Array.isArray(value) ? members.length : 2 * members.length
    if (messages > EDGE_FRAME_BOUNDS.messages) {
      throw new WireError(
        "too_many",
        `the parameters of the run have too many values: at most ${EDGE_FRAME_BOUNDS.messages} are allowed`
      )
    }
    for (const member of members) {
      if (typeof member === "object" && member !== null) left.push(member)
    }
  }
}

/** Registers a node. Throws a `WireError` if its configuration is more than a node takes. */
export const encodeRegisterAccepted = (
  accepted: MessageInitShape<typeof RegisterAcceptedSchema>
): Uint8Array =>
  encodeBody({
    case: "registerResponse",
    value: { result: { case: "accepted", value: create(RegisterAcceptedSchema, accepted) } }
  })

/** Refuses a node. */
export const encodeRegisterRejected = (
  rejected: MessageInitShape<typeof RegisterRejectedSchema>
): Uint8Array =>
  encodeBody({
    case: "registerResponse",
    value: { result: { case: "rejected", value: create(RegisterRejectedSchema, rejected) } }
  })

/** Asks a node to finish. */
export const encodeDrain = (timeoutMs: number, reason: string): Uint8Array =>
  encodeBody({ case: "drain", value: { timeoutMs, reason } })

/** The last frame of the edge. */
export const encodeGoodbye = (code: GoodbyeCode, message: string): Uint8Array =>
  encodeBody({ case: "goodbye", value: { code, message } })

const encodeBody = (body: MessageInitShape<typeof EdgeFrameSchema>["body"] & object): Uint8Array =>
  encodeMessage(EdgeFrameSchema, create(EdgeFrameSchema, { body }), EDGE_FRAME_BOUNDS, FOREIGN)
