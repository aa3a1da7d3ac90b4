import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf"
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { BinaryWriter } from "@bufbuild/protobuf/wire"
import { assert, describe, it } from "@effect/vitest"
import { EdgeFrameSchema, GoodbyeCode } from "../gen/iop/v1/frame_pb.ts"
import { RejectCode } from "../gen/iop/v1/register_pb.ts"
import { RunInputSchema } from "../gen/iop/v1/run_input_pb.ts"
import { CancelCode } from "../gen/iop/v1/run_pb.ts"
import {
  decodeEdgeFrame,
  encodeAck,
  encodeCancel,
  encodeDrain,
  encodeGoodbye,
  encodePing,
  encodeRegisterAccepted,
  encodeRegisterRejected,
  encodeRunRequest,
  type RunRequestFields
} from "./edgeFrameWire.ts"
import { MAX_DEPTH, MAX_EDGE_FRAME_MESSAGES, MAX_MESSAGE_LENGTH } from "./limits.ts"
import { encodePong } from "./nodeFrameWire.ts"
import { encodeRunEventFrame } from "./runEventWire.ts"
import { chatInput } from "./runInputText.ts"
import { arbitraryBrokenText, arbitraryUint32 } from "./testing/arbitraryRunEvent.ts"
import { WireError, type WireErrorReason } from "./WireError.ts"

type Body = MessageInitShape<typeof EdgeFrameSchema>["body"] & object

const byLibrary = (body: Body): Uint8Array => toBinary(EdgeFrameSchema, create(EdgeFrameSchema, { body }))

const run: RunRequestFields = {
  runId: "01JD0000000000000000000000",
  attempt: 1,
  handle: 7,
  adapter: "llama",
  target: "qwen3-8b",
  input: chatInput("안녕"),
  stream: true,
  session: "s",
  deadlineMs: 1000,
  traceparent: ""
}

const throwsReason = (act: () => unknown, reason: WireErrorReason): WireError => {
  try {
    act()
  } catch (error) {
    assert(error instanceof WireError)
    assert.strictEqual(error.reason, reason)
    return error
  }
  return assert.fail("nothing was thrown")
}

/** Parameters of `levels` objects, each in the one before. */
const nestedParameters = (levels: number): JsonObject => {
  let value: JsonObject = {}
  for (let level = 1; level < levels; level++) value = { a: value }
  return value
}

describe("small frames of the edge", () => {
  it.prop(
    "are written as protobuf-es does and read back",
    { handle: arbitraryUint32, seq: arbitraryUint32, reason: arbitraryBrokenText },
    ({ handle, seq, reason }) => {
      assert.deepStrictEqual(encodePing(seq), byLibrary({ case: "ping", value: { nonce: seq } }))
      assert.deepStrictEqual(decodeEdgeFrame(encodePing(seq)), { kind: "ping", nonce: seq, unknownFields: 0 })

      assert.deepStrictEqual(encodeAck(handle, seq), byLibrary({ case: "runAck", value: { handle, seq } }))
      assert.deepStrictEqual(decodeEdgeFrame(encodeAck(handle, seq)), {
        kind: "run_ack",
        handle,
        seq,
        unknownFields: 0
      })

      const code = CancelCode.DEADLINE
      const cancel = encodeCancel(handle, code, reason)
      assert.deepStrictEqual(cancel, byLibrary({ case: "runCancel", value: { handle, code, reason } }))
      assert.deepStrictEqual(decodeEdgeFrame(cancel), {
        kind: "run_cancel",
        handle,
        code,
        reason: reason.toWellFormed(),
        unknownFields: 0
      })
    },
    { arbitrary: { runs: 1000 } }
  )

  it("reads an acknowledgement that is not canonical", () => {
    const ack = new BinaryWriter()
      .uint32((19 << 3) | 2)
      .fork()
      .uint32(2 << 3)
      .uint32(5)
      .uint32(1 << 3)
      .uint32(4)
      .uint32(9 << 3)
      .uint32(1)
      .join()
      .finish()
    assert.deepStrictEqual(decodeEdgeFrame(ack), { kind: "run_ack", handle: 4, seq: 5, unknownFields: 1 })
    const cutOff = Uint8Array.of(...encodeAck(1, 1).slice(0, -1), 0x80)
    throwsReason(() => decodeEdgeFrame(cutOff), "malformed")
  })

  it("cuts the reason of a cancel", () => {
    const frame = decodeEdgeFrame(encodeCancel(1, CancelCode.CALLER, "r".repeat(MAX_MESSAGE_LENGTH + 1)))
    assert(frame.kind === "run_cancel")
    assert.strictEqual(frame.reason, "r".repeat(MAX_MESSAGE_LENGTH))
  })

  it("reads drains, goodbyes and rejections", () => {
    assert.deepStrictEqual(decodeEdgeFrame(encodeDrain(30_000, "update")), {
      kind: "drain",
      timeoutMs: 30_000,
      reason: "update",
      unknownFields: 0
    })
    const goodbye = decodeEdgeFrame(encodeGoodbye(GoodbyeCode.REPLACED, "a newer link"))
    assert(goodbye.kind === "goodbye")
    assert.deepInclude(goodbye.value, { code: GoodbyeCode.REPLACED, message: "a newer link" })
    const rejected = decodeEdgeFrame(
      encodeRegisterRejected({ code: RejectCode.DRAINING, message: "m", retryable: true, retryAfterMs: 5000 })
    )
    assert(rejected.kind === "register_response" && rejected.value.result.case === "rejected")
    assert.deepInclude(rejected.value.result.value, {
      code: RejectCode.DRAINING,
      message: "m",
      retryAfterMs: 5000
    })
  })

  it("reads an acceptance with its configuration", () => {
    const frame = decodeEdgeFrame(
      encodeRegisterAccepted({
        nodeId: "tower",
        linkEpoch: 2n ** 53n + 1n,
        config: {
          revision: "r1",
          labels: { gpu: "rtx5090" },
          adapters: [
            { name: "mock", settings: { case: "mock", value: { seed: 1n, scripts: { echo: { delay: 5 } } } } }
          ]
        },
        heldRuns: [
          { runId: "r", attempt: 1, decision: { case: "resume", value: { afterSeq: 4, handle: 2 } } }
        ]
      })
    )
    assert(frame.kind === "register_response" && frame.value.result.case === "accepted")
    const accepted = frame.value.result.value
    assert.strictEqual(accepted.linkEpoch, 2n ** 53n + 1n)
    assert.deepStrictEqual(accepted.config?.labels, { gpu: "rtx5090" })
    assert.deepInclude(accepted.config?.adapters[0]?.settings.value, { scripts: { echo: { delay: 5 } } })
  })
})

describe("run requests", () => {
  it("are read back as they were given", () => {
    const frame = decodeEdgeFrame(encodeRunRequest(run))
    assert(frame.kind === "run_request")
    assert.deepInclude(frame.value, { ...run, input: frame.value.input })
    assert.deepStrictEqual(frame.value.input, run.input)
  })

  it.prop(
    "hold U+FFFD for each lone surrogate",
    { text: arbitraryBrokenText },
    ({ text }) => {
      const input = create(RunInputSchema, {
        kind: { case: "prompt", value: { text } },
        parameters: { p: text }
      })
      const frame = decodeEdgeFrame(encodeRunRequest({ ...run, input, session: text }))
      assert(frame.kind === "run_request" && frame.value.input?.kind.case === "prompt")
      assert.strictEqual(frame.value.session, text.toWellFormed())
      assert.strictEqual(frame.value.input.kind.value.text, text.toWellFormed())
      assert.deepStrictEqual(frame.value.input.parameters, { p: text.toWellFormed() })
    },
    { arbitrary: { runs: 500 } }
  )

  it("FR10 with parameters up to the limit of nesting are taken, deeper ones refused, at both ends", () => {
    // Envelope, request and input are three levels; each object of the parameters is three: Struct, entry, Value.
    const most = Math.floor((MAX_DEPTH - 3 - 1) / 3) + 1
    const withParameters = (levels: number) =>
      create(RunInputSchema, { kind: { case: "prompt", value: {} }, parameters: nestedParameters(levels) })
    const frame = decodeEdgeFrame(encodeRunRequest({ ...run, input: withParameters(most) }))
    assert(frame.kind === "run_request")
    assert.deepStrictEqual(frame.value.input?.parameters, nestedParameters(most))

    const error = throwsReason(
      () => encodeRunRequest({ ...run, input: withParameters(most + 1) }),
      "too_deep"
    )
    assert.match(error.message, /EdgeFrame is nested more than 100 levels deep/)
    const bytes = byLibrary({ case: "runRequest", value: { input: withParameters(most + 1) } })
    throwsReason(() => decodeEdgeFrame(bytes), "too_deep")
  })

  it("FR10 with parameters of 10,000 levels are refused without a stack overflow", () => {
    const input = create(RunInputSchema, { kind: { case: "prompt", value: {} } })
    input.parameters = nestedParameters(10_000)
    throwsReason(() => encodeRunRequest({ ...run, input }), "too_deep")

    // The same as bytes: each level is a head before all the rest, so the heads are made from the inside out.
    const heads: Array<Uint8Array> = []
    let length = 0
    const wrap = (number: number): void => {
      const head = new BinaryWriter().tag(number, 2).uint32(length).finish()
      heads.push(head)
      length += head.length
    }
    for (let level = 0; level < 10_000; level++) {
      // A Value is a Struct (5), an entry has it as its value (2), a Struct has the entry (1).
      for (const number of [5, 2, 1]) wrap(number)
    }
    // The Struct is the parameters (15) of the input (6) of a RunRequest (18).
    for (const number of [15, 6, 18]) wrap(number)
    const bytes = Uint8Array.from(Buffer.concat(heads.reverse()))
    throwsReason(() => decodeEdgeFrame(bytes), "too_deep")
  })

  it("with more messages than a node takes are refused before they are sent", () => {
    const messages = new Array(MAX_EDGE_FRAME_MESSAGES).fill({})
    const input = create(RunInputSchema, { kind: { case: "chat", value: { messages } } })
    const error = throwsReason(() => encodeRunRequest({ ...run, input }), "too_many")
    assert.match(error.message, /nested messages: at most 131072/)
  })

  it("with more parameters than a node takes are refused before they are written", () => {
    const values = new Array(MAX_EDGE_FRAME_MESSAGES + 1).fill(1)
    const parameters = create(RunInputSchema, { parameters: { values } })
    const error = throwsReason(() => encodeRunRequest({ ...run, input: parameters }), "too_many")
    assert.match(error.message, /parameters of the run have too many values: at most 131072/)
    const tools = [
      { kind: { case: "custom", value: { kind: "k", definition: { deep: { values } } } } }
    ] as const
    const input = create(RunInputSchema, { kind: { case: "chat", value: { tools: [...tools] } } })
    throwsReason(() => encodeRunRequest({ ...run, input }), "too_many")
    const fits = create(RunInputSchema, {
      parameters: { values: new Array(1000).fill({ a: [null, "b", true] }) }
    })
    const frame = decodeEdgeFrame(encodeRunRequest({ ...run, input: fits }))
    assert(frame.kind === "run_request")
    assert.deepStrictEqual(frame.value.input?.parameters, fits.parameters)
  })

  it("with a value that its field cannot hold are refused with the field's name", () => {
    const error = throwsReason(() => encodeRunRequest({ ...run, deadlineMs: 1.5 }), "malformed")
    assert.match(error.message, /iop\.v1\.RunRequest\.deadline_ms/)
  })
})

describe("frames that a node must not take", () => {
  it("FR13 are those of its own direction", () => {
    assert.strictEqual(decodeEdgeFrame(encodePong(1)).kind, "wrong_direction")
    assert.strictEqual(
      decodeEdgeFrame(encodeRunEventFrame(1, 1, { type: "started" })).kind,
      "wrong_direction"
    )
  })

  it("FR8 are not those of an unknown body: it is ignored", () => {
    assert.deepStrictEqual(decodeEdgeFrame(new Uint8Array()), { kind: "unknown", unknownFields: 0 })
    const newer = new BinaryWriter()
      .uint32((40 << 3) | 2)
      .string("new")
      .finish()
    assert.deepStrictEqual(decodeEdgeFrame(newer), { kind: "unknown", unknownFields: 1 })
  })

  it("FR9 leave no unknown field in what is read", () => {
    const extra = new BinaryWriter()
      .uint32((18 << 3) | 2)
      .fork()
      .uint32(77 << 3)
      .uint32(1)
      .join()
      .finish()
    const frame = decodeEdgeFrame(Uint8Array.from([...encodeRunRequest(run), ...extra]))
    assert(frame.kind === "run_request")
    assert.strictEqual(frame.unknownFields, 1)
    assert.strictEqual(frame.value.$unknown, undefined)
    assert.strictEqual(frame.value.runId, run.runId)
  })

  it("FR11 are those with text that is not UTF-8, in keys of parameters too", () => {
    const input = create(RunInputSchema, { parameters: { kkkk: "vvvv" } })
    for (const at of ["kkkk", "vvvv"]) {
      const bytes = encodeRunRequest({ ...run, input })
      const index = Buffer.from(bytes).indexOf(at)
      bytes[index] = 0xff
      throwsReason(() => decodeEdgeFrame(bytes), "invalid_utf8")
    }
    assert.strictEqual(
      fromBinary(EdgeFrameSchema, encodeRunRequest({ ...run, input })).body.case,
      "runRequest"
    )
  })
})
