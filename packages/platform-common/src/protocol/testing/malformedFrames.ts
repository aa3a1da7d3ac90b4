// Bytes that break a rule of the protocol, and what the receiver does then. Written to proto/testdata/malformed next
// to the golden frames.

import { BinaryWriter } from "@bufbuild/protobuf/wire"

/** One broken stream. */
export interface MalformedFrame {
  /** Who receives it. */
  readonly receiver: "edge" | "node"
  /** Whether it comes before or after the registration. */
  readonly phase: "unregistered" | "registered"
  /** Whether the bytes are a stream with lengths, or one envelope without. */
  readonly framed: boolean
  /** The rule of proto/README.md. */
  readonly rule: string
  /** What the receiver does. */
  readonly outcome: "link_ended" | "ignored"
  /** What the codec says about an envelope: an error's reason, or the kind of a decoded frame. */
  readonly codec?: "malformed" | "too_many" | "too_deep" | "invalid_utf8" | "unknown" | "wrong_direction"
  /** For a person. */
  readonly why: string
  readonly bytes: Uint8Array
}

const bytes = (...values: ReadonlyArray<number>): Uint8Array => Uint8Array.from(values)

const header = (length: number): Uint8Array => {
  const made = new Uint8Array(4)
  new DataView(made.buffer).setUint32(0, length)
  return made
}

/** An envelope of a status with `count` adapters without a name. */
const adapters = (count: number): Uint8Array => {
  const writer = new BinaryWriter().uint32((2 << 3) | 2).fork()
  for (let index = 0; index < count; index++) writer.uint32((2 << 3) | 2).uint32(0)
  return writer.join().finish()
}

/** A RunRequest whose parameters are `levels` objects, each in the one before. */
const nestedParameters = (levels: number): Uint8Array => {
  let struct: Uint8Array = new Uint8Array()
  for (let level = 1; level < levels; level++) {
    const value = new BinaryWriter()
      .uint32((5 << 3) | 2)
      .bytes(struct)
      .finish()
    const entry = new BinaryWriter()
      .uint32((1 << 3) | 2)
      .string("a")
      .uint32((2 << 3) | 2)
      .bytes(value)
      .finish()
    struct = new BinaryWriter()
      .uint32((1 << 3) | 2)
      .bytes(entry)
      .finish()
  }
  const request = new BinaryWriter()
    .uint32((18 << 3) | 2)
    .fork()
    .uint32((6 << 3) | 2)
    .fork()
  return request
    .uint32((15 << 3) | 2)
    .bytes(struct)
    .join()
    .join()
    .finish()
}

const envelope = { receiver: "edge", phase: "registered", framed: false, outcome: "link_ended" } as const
const stream = { receiver: "edge", phase: "registered", framed: true, outcome: "link_ended" } as const

/** The broken streams, by name. */
export const malformedFrames: Readonly<Record<string, MalformedFrame>> = {
  "length-zero": { ...stream, rule: "R-FRAME-2", why: "a frame of no bytes", bytes: header(0) },
  "length-zero-unregistered": {
    ...stream,
    phase: "unregistered",
    rule: "R-FRAME-2",
    why: "a frame of no bytes",
    bytes: header(0)
  },
  "length-over-limit": { ...stream, rule: "R-FRAME-3", why: "1 MiB and one byte", bytes: header(1_048_577) },
  "length-over-limit-unregistered": {
    ...stream,
    phase: "unregistered",
    rule: "R-FRAME-3",
    why: "64 KiB and one byte before the registration",
    bytes: header(65_537)
  },
  "length-largest": {
    ...stream,
    rule: "R-FRAME-3",
    why: "the largest length there is",
    bytes: header(0xffff_ffff)
  },
  "http-request": {
    ...stream,
    phase: "unregistered",
    rule: "R-FRAME-3",
    why: "an HTTP request; its first four bytes read as a length of 1,195,725,856",
    bytes: new TextEncoder().encode("GET / HTTP/1.1\r\nHost: edge\r\n\r\n")
  },
  truncated: {
    ...stream,
    rule: "R-FRAME-4",
    why: "the stream ends after 3 of 5 bytes of a frame",
    bytes: bytes(0, 0, 0, 5, 0x1a, 2, 8)
  },
  "empty-body": {
    ...envelope,
    rule: "R-FRAME-9",
    outcome: "ignored",
    codec: "unknown",
    why: "the field of no known body",
    bytes: bytes(0x4a, 0)
  },
  "empty-body-first": {
    ...envelope,
    phase: "unregistered",
    rule: "R-REG-1",
    codec: "unknown",
    why: "the first frame is no RegisterRequest",
    bytes: bytes(0x4a, 0)
  },
  "pong-first": {
    ...stream,
    phase: "unregistered",
    rule: "R-REG-1",
    why: "the first frame is a Pong",
    bytes: bytes(0, 0, 0, 4, 0x1a, 2, 8, 1)
  },
  "wrong-direction": {
    ...envelope,
    rule: "R-FRAME-8",
    codec: "wrong_direction",
    why: "a Ping, which only the edge sends",
    bytes: bytes(0x8a, 1, 2, 8, 1)
  },
  "wrong-direction-unknown": {
    ...envelope,
    rule: "R-FRAME-8",
    codec: "wrong_direction",
    why: "body 31, which only the edge may send once there is one",
    bytes: bytes(0xfa, 1, 0)
  },
  "wrong-direction-node": {
    ...envelope,
    receiver: "node",
    rule: "R-FRAME-8",
    codec: "wrong_direction",
    why: "a Pong, which only a node sends",
    bytes: bytes(0x1a, 2, 8, 1)
  },
  "cut-off": {
    ...envelope,
    rule: "R-FRAME-5",
    codec: "malformed",
    why: "the body says 4 bytes, the frame has 2 more",
    bytes: bytes(0x1a, 4, 8, 1)
  },
  "inner-length-too-long": {
    ...envelope,
    rule: "R-FRAME-5",
    codec: "malformed",
    why: "the text of a delta goes beyond the delta, though not beyond the frame",
    bytes: bytes(0x22, 7, 0x22, 2, 0x12, 3, 0x61, 0x62, 0x63)
  },
  "wrong-wire-type": {
    ...envelope,
    rule: "R-FRAME-5",
    codec: "malformed",
    why: "the nonce of a Pong as a text",
    bytes: bytes(0x1a, 2, 0x0a, 0)
  },
  "field-number-zero": {
    ...envelope,
    rule: "R-FRAME-5",
    codec: "malformed",
    why: "a field with the number 0",
    bytes: bytes(0, 0)
  },
  "deep-groups": {
    ...envelope,
    rule: "R-FRAME-6",
    codec: "too_deep",
    why: "10,000 nested groups",
    bytes: new Uint8Array(10_000).fill(0x4b)
  },
  "deep-parameters": {
    ...envelope,
    receiver: "node",
    rule: "R-FRAME-6",
    codec: "too_deep",
    why: "parameters of 34 nested objects, 102 levels in all",
    bytes: nestedParameters(34)
  },
  "too-many-adapters": {
    ...envelope,
    rule: "R-FRAME-7",
    codec: "too_many",
    why: "a status of 257 adapters",
    bytes: adapters(257)
  },
  "invalid-utf8": {
    ...envelope,
    rule: "R-TEXT-1",
    codec: "invalid_utf8",
    why: "a delta with half a surrogate pair, encoded as if it were a character",
    bytes: bytes(0x22, 11, 8, 7, 0x10, 2, 0x22, 5, 0x12, 3, 0xed, 0xa0, 0x80)
  },
  "invalid-utf8-cut": {
    ...envelope,
    rule: "R-TEXT-1",
    codec: "invalid_utf8",
    why: "a delta that ends within a character",
    bytes: bytes(0x22, 10, 8, 7, 0x10, 2, 0x22, 4, 0x12, 2, 0xec, 0x95)
  }
}
