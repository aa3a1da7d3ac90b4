import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { BinaryWriter } from "@bufbuild/protobuf/wire"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { GoodbyeCode, NodeFrameSchema } from "../gen/iop/v1/frame_pb.ts"
import { AdapterState, NodeStatusSchema } from "../gen/iop/v1/status_pb.ts"
import { decodeRunEventFrame } from "./decodeRunEvent.ts"
import { encodeAck, encodePing } from "./edgeFrameWire.ts"
import {
  MAX_ADAPTER_KINDS,
  MAX_ADAPTERS,
  MAX_DEPTH,
  MAX_HELD_RUNS,
  MAX_NODE_FRAME_FIELDS,
  MAX_NODE_FRAME_MESSAGES,
  MAX_TARGETS,
  NODE_FRAME_BOUNDS
} from "./limits.ts"
import {
  decodeNodeFrame,
  encodeNodeGoodbye,
  encodeNodeStatus,
  encodePong,
  encodeRegisterRequest
} from "./nodeFrameWire.ts"
import { runEventFromMessage } from "./runEventFromMessage.ts"
import { encodeRunEventFrame } from "./runEventWire.ts"
import { scanFrame } from "./scanFrame.ts"
import { arbitraryRunEvent } from "./testing/arbitraryRunEvent.ts"
import { WireError, type WireErrorReason } from "./WireError.ts"

const bytesOf = (build: (writer: BinaryWriter) => void): Uint8Array => {
  const writer = new BinaryWriter()
  build(writer)
  return writer.finish()
}

const refused = (bytes: Uint8Array, reason: WireErrorReason, message: RegExp): void => {
  try {
    decodeNodeFrame(bytes)
  } catch (error) {
    assert(error instanceof WireError)
    assert.strictEqual(error.reason, reason)
    assert.match(error.message, message)
    return
  }
  assert.fail("the frame was taken")
}

const request = {
  protocolVersion: { major: 1, minor: 0 },
  token: "token",
  bootId: Uint8Array.from({ length: 16 }, (_, index) => index),
  agentName: "iop-node",
  agentVersion: "0.1.0",
  adapterKinds: ["mock", "openai"],
  heldRuns: [{ runId: "run-1", attempt: 2, firstUnackedSeq: 4, lastSeq: 9 }]
}

const status = {
  configRevision: "r1",
  adapters: [
    {
      name: "llama",
      state: AdapterState.READY,
      targets: [{ name: "qwen3-8b", capabilities: ["chat"], contextLength: 32_768 }],
      slots: 4,
      slotsInUse: 1
    }
  ],
  draining: true
}

describe("frames of a node", () => {
  it("decodes a registration, with a boot id of its own", () => {
    const bytes = encodeRegisterRequest(request)
    const frame = decodeNodeFrame(bytes)
    bytes.fill(0)
    assert(frame.kind === "register_request")
    const { value } = frame
    assert.deepStrictEqual(value.protocolVersion?.major, 1)
    assert.strictEqual(value.token, "token")
    assert.deepStrictEqual(value.bootId, request.bootId)
    assert.deepStrictEqual(value.adapterKinds, ["mock", "openai"])
    assert.deepInclude(value.heldRuns[0], { runId: "run-1", attempt: 2, firstUnackedSeq: 4, lastSeq: 9 })
  })

  it("decodes a status", () => {
    const frame = decodeNodeFrame(encodeNodeStatus(status))
    assert(frame.kind === "node_status")
    assert.deepStrictEqual(frame.value, create(NodeStatusSchema, status))
  })

  it("decodes pongs and goodbyes", () => {
    assert.deepStrictEqual(decodeNodeFrame(encodePong(0)), { kind: "pong", nonce: 0, unknownFields: 0 })
    assert.deepStrictEqual(decodeNodeFrame(encodePong(0xffff_ffff)), {
      kind: "pong",
      nonce: 0xffff_ffff,
      unknownFields: 0
    })
    const frame = decodeNodeFrame(encodeNodeGoodbye(GoodbyeCode.SHUTDOWN, "stopping"))
    assert(frame.kind === "goodbye")
    assert.deepInclude(frame.value, { code: GoodbyeCode.SHUTDOWN, message: "stopping" })
  })

  it("writes a pong as protobuf-es does", () => {
    for (const nonce of [0, 1, 127, 128, 0xffff_ffff]) {
      const message = create(NodeFrameSchema, { body: { case: "pong", value: { nonce } } })
      assert.deepStrictEqual(encodePong(nonce), toBinary(NodeFrameSchema, message))
    }
  })

  it("FR8 calls an empty body, and one of an unknown number, unknown", () => {
    assert.deepStrictEqual(decodeNodeFrame(new Uint8Array()), { kind: "unknown", unknownFields: 0 })
    const newer = bytesOf((writer) => writer.uint32((9 << 3) | 2).string("new"))
    assert.deepStrictEqual(decodeNodeFrame(newer), { kind: "unknown", unknownFields: 1 })
    const muchNewer = bytesOf((writer) => writer.uint32((5000 << 3) | 2).string("new"))
    assert.deepStrictEqual(decodeNodeFrame(muchNewer), { kind: "unknown", unknownFields: 1 })
  })

  it("FR9 counts unknown fields at every depth and keeps none", () => {
    const bytes = bytesOf((writer) =>
      writer
        .uint32((2 << 3) | 2)
        .fork()
        .uint32((1 << 3) | 2)
        .string("r1")
        .uint32((2 << 3) | 2)
        .fork()
        .uint32((1 << 3) | 2)
        .string("llama")
        .uint32((90 << 3) | 2)
        .string("deep secret")
        .uint32((91 << 3) | 1)
        .double(1)
        .uint32((92 << 3) | 5)
        .float(1)
        .join()
        .uint32(93 << 3)
        .uint32(1)
        .join()
        .uint32((94 << 3) | 3)
        .uint32(95 << 3)
        .uint32(1)
        .uint32((94 << 3) | 4)
    )
    const frame = decodeNodeFrame(bytes)
    assert(frame.kind === "node_status")
    assert.strictEqual(frame.unknownFields, 6)
    assert.strictEqual(frame.value.$unknown, undefined)
    assert.deepStrictEqual(
      frame.value.adapters,
      create(NodeStatusSchema, { adapters: [{ name: "llama" }] }).adapters
    )
  })

  it("FR13 calls every body of an EdgeFrame wrong_direction, known or not", () => {
    assert.strictEqual(decodeNodeFrame(encodePing(1)).kind, "wrong_direction")
    assert.strictEqual(decodeNodeFrame(encodeAck(1, 2)).kind, "wrong_direction")
    const number31 = bytesOf((writer) => writer.uint32((31 << 3) | 2).string(""))
    assert.strictEqual(decodeNodeFrame(number31).kind, "wrong_direction")
    const both = Uint8Array.from([...encodePing(1), ...encodePong(1)])
    assert.strictEqual(decodeNodeFrame(both).kind, "wrong_direction")
  })
})

describe("frames that are refused", () => {
  it("FR10 refuses 10,000 nested groups", () => {
    const groups = new Uint8Array(10_000).fill((9 << 3) | 3)
    refused(groups, "too_deep", /more than 100 levels/)
    const within = bytesOf((writer) => writer.uint32((2 << 3) | 2).bytes(groups))
    refused(within, "too_deep", /more than 100 levels/)
  })

  it("FR10 takes groups up to the limit", () => {
    const count = MAX_DEPTH - 1
    const groups = bytesOf((writer) => {
      for (let level = 0; level < count; level++) writer.uint32((9 << 3) | 3)
      for (let level = 0; level < count; level++) writer.uint32((9 << 3) | 4)
    })
    assert.deepStrictEqual(decodeNodeFrame(groups), { kind: "unknown", unknownFields: count })
  })

  it("FR11 refuses text that is not UTF-8, in events and elsewhere", () => {
    for (const bad of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe3, 0x81]]) {
      for (const padding of [0, 40]) {
        const text = Uint8Array.from([...new Array(padding).fill(97), ...bad])
        const delta = bytesOf((writer) =>
          writer
            .uint32((4 << 3) | 2)
            .fork()
            .uint32((4 << 3) | 2)
            .fork()
            .uint32((2 << 3) | 2)
            .bytes(text)
            .join()
            .join()
        )
        refused(delta, "invalid_utf8", /not valid UTF-8/)
        const token = bytesOf((writer) =>
          writer
            .uint32((1 << 3) | 2)
            .fork()
            .uint32((2 << 3) | 2)
            .bytes(text)
            .join()
        )
        refused(token, "invalid_utf8", /not valid UTF-8/)
      }
    }
  })

  it("refuses a length that goes beyond its message", () => {
    const bytes = Uint8Array.of((4 << 3) | 2, 4, (4 << 3) | 2, 10, (2 << 3) | 2, 0)
    refused(bytes, "malformed", /length of 10 at byte 4 goes beyond/)
  })

  it("refuses a text that takes bytes of the next field", () => {
    // The delta is 2 bytes long, its text says 3, and the frame would have them.
    const bytes = Uint8Array.of((4 << 3) | 2, 7, (4 << 3) | 2, 2, (2 << 3) | 2, 3, 97, 98, 99)
    refused(bytes, "malformed", /goes beyond its message/)
  })

  it("refuses a known field of another wire type", () => {
    refused(Uint8Array.of(3 << 3, 1), "malformed", /iop\.v1\.NodeFrame\.pong has wire type 0 instead of 2/)
    refused(
      Uint8Array.of((3 << 3) | 2, 2, (1 << 3) | 2, 0),
      "malformed",
      /iop\.v1\.Pong\.nonce has wire type 2/
    )
  })

  it("refuses numbers that do not end, field number 0 and stray ends of groups", () => {
    refused(Uint8Array.of(0x80), "malformed", /ends within a number/)
    refused(
      Uint8Array.of((3 << 3) | 2, 12, 8, ...new Array(11).fill(0x80)),
      "malformed",
      /longer than ten bytes/
    )
    refused(Uint8Array.of(0, 0), "malformed", /field number at byte 0 is 0/)
    refused(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x1f), "malformed", /larger than 32 bits/)
    refused(Uint8Array.of((9 << 3) | 4), "malformed", /wire type 4/)
    refused(Uint8Array.of((9 << 3) | 6), "malformed", /wire type 6/)
    refused(Uint8Array.of((9 << 3) | 3, (8 << 3) | 4), "malformed", /group of field 9 is ended as field 8/)
    refused(Uint8Array.of((9 << 3) | 3), "malformed", /does not end/)
    refused(Uint8Array.of((9 << 3) | 1, 0, 0), "malformed", /ends within a value/)
  })

  it("refuses packed floats that are cut off", () => {
    const bytes = bytesOf((writer) =>
      writer
        .uint32((4 << 3) | 2)
        .fork()
        .uint32((4 << 3) | 2)
        .fork()
        .uint32((7 << 3) | 2)
        .fork()
        .uint32((2 << 3) | 2)
        .bytes(new Uint8Array(6))
        .join()
        .join()
        .join()
    )
    refused(bytes, "malformed", /packed values of iop\.v1\.Embedding\.values are cut off/)
  })
})

describe("counts", () => {
  /** A message body `no` of the envelope with `count` empty messages as its field `field`. */
  const repeated = (no: number, field: number, count: number): Uint8Array =>
    bytesOf((writer) => {
      writer.uint32((no << 3) | 2).fork()
      for (let index = 0; index < count; index++) writer.uint32((field << 3) | 2).uint32(0)
      writer.join()
    })

  it("takes the most adapters, kinds and held runs, and refuses one more", () => {
    assert.strictEqual(decodeNodeFrame(repeated(2, 2, MAX_ADAPTERS)).kind, "node_status")
    refused(repeated(2, 2, MAX_ADAPTERS + 1), "too_many", /iop\.v1\.NodeStatus\.adapters: at most 256/)
    assert.strictEqual(decodeNodeFrame(repeated(1, 6, MAX_ADAPTER_KINDS)).kind, "register_request")
    refused(repeated(1, 6, MAX_ADAPTER_KINDS + 1), "too_many", /adapter_kinds: at most 64/)
    assert.strictEqual(decodeNodeFrame(repeated(1, 7, MAX_HELD_RUNS)).kind, "register_request")
    refused(repeated(1, 7, MAX_HELD_RUNS + 1), "too_many", /held_runs: at most 4096/)
  })

  it("refuses a status with more targets than an adapter may have, at both ends", () => {
    const targets = new Array(MAX_TARGETS + 1).fill({ name: "t" })
    assert.throws(() => encodeNodeStatus({ adapters: [{ targets }] }), /AdapterStatus\.targets: at most 4096/)
    const frame = create(NodeFrameSchema, {
      body: { case: "nodeStatus", value: { adapters: [{ targets }] } }
    })
    refused(toBinary(NodeFrameSchema, frame), "too_many", /AdapterStatus\.targets: at most 4096/)
  })

  it("refuses a mebibyte of empty elements that each message by itself would be allowed", () => {
    const bytes = bytesOf((writer) => {
      writer.uint32((2 << 3) | 2).fork()
      for (let adapter = 0; adapter < 128; adapter++) {
        writer.uint32((2 << 3) | 2).fork()
        for (let target = 0; target < MAX_TARGETS; target++) writer.uint32((4 << 3) | 2).uint32(0)
        writer.join()
      }
      writer.join()
    })
    assert.isAbove(bytes.length, 1_048_576)
    refused(bytes, "too_many", new RegExp(`nested messages: at most ${MAX_NODE_FRAME_MESSAGES}`))
  })

  it("refuses a mebibyte of unknown fields", () => {
    const bytes = new Uint8Array(1_048_576)
    for (let at = 0; at < bytes.length; at += 2) bytes[at] = 9 << 3
    refused(bytes, "too_many", new RegExp(`fields: at most ${MAX_NODE_FRAME_FIELDS}`))
  })
})

describe("mutated frames", () => {
  const byte = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 })))
  const position = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff })))
  const mutation = Arbitrary.all({
    how: Arbitrary.schema(Schema.Literals(["set", "insert", "remove", "cut"])),
    position,
    byte
  })

  const seeds = [
    encodeRegisterRequest(request),
    encodeNodeStatus(status),
    encodePong(7),
    encodeNodeGoodbye(1, "x")
  ]

  const mutated = (
    bytes: Uint8Array,
    mutations: ReadonlyArray<{ how: string; position: number; byte: number }>
  ) => {
    const changed = [...bytes]
    for (const { how, position, byte } of mutations) {
      const at = position % (changed.length + 1)
      if (how === "set") changed[at] = byte
      else if (how === "insert") changed.splice(at, 0, byte)
      else if (how === "remove") changed.splice(at, 1)
      else changed.length = at
    }
    return Uint8Array.from(changed)
  }

  it.prop(
    "FR12 are decoded or refused with a WireError, whatever they were",
    {
      event: arbitraryRunEvent,
      pick: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 7 }))),
      mutations: Arbitrary.array(mutation, { minLength: 1, maxLength: 6 })
    },
    ({ event, pick, mutations }) => {
      const bytes = mutated(seeds[pick] ?? encodeRunEventFrame(1, 2, event), mutations)
      try {
        decodeNodeFrame(bytes)
      } catch (error) {
        assert.instanceOf(error, WireError)
      }
    },
    { arbitrary: { runs: 10_000 } }
  )

  it.prop(
    "FR12 that are read by hand mean the same the slow way",
    { event: arbitraryRunEvent, mutations: Arbitrary.array(mutation, { maxLength: 3 }) },
    ({ event, mutations }) => {
      const bytes = mutated(encodeRunEventFrame(1, 2, event), mutations)
      const byHand = decodeRunEventFrame(bytes)
      if (byHand === undefined) return
      assert.deepStrictEqual(scanFrame(NodeFrameSchema, bytes, NODE_FRAME_BOUNDS, { from: 16, to: 31 }), {
        unknownFields: 0,
        foreign: false
      })
      const { body } = fromBinary(NodeFrameSchema, bytes)
      assert(body.case === "runEvent")
      const { handle, seq } = body.value
      assert.deepStrictEqual(byHand, { handle, seq, event: runEventFromMessage(body.value) })
    },
    { arbitrary: { runs: 10_000 } }
  )
})
