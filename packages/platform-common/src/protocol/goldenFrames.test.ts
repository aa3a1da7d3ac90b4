import { readdirSync, readFileSync } from "node:fs"
import type { DescMessage, JsonValue } from "@bufbuild/protobuf"
import { fromBinary, fromJson, toBinary, toJson } from "@bufbuild/protobuf"
import { assert, describe, it } from "@effect/vitest"
import { EdgeFrameSchema, NodeFrameSchema } from "../gen/iop/v1/frame_pb.ts"
import { decodeEdgeFrame, encodeAck, encodeCancel, encodePing, encodeRunRequest } from "./edgeFrameWire.ts"
import { decodeNodeFrame, encodePong } from "./nodeFrameWire.ts"
import { encodeRunEventFrame } from "./runEventWire.ts"
import { framed, fromHex, goldenFiles, toHex } from "./testing/goldenFiles.ts"
import { goldenEdgeFrames, goldenNodeFrames } from "./testing/goldenFrames.ts"
import { malformedFrames } from "./testing/malformedFrames.ts"
import { WireError } from "./WireError.ts"

const folder = new URL("../../../../proto/testdata/", import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, folder), "utf8")

const envelopes = [
  { name: "node", schema: NodeFrameSchema, frames: [...goldenNodeFrames.keys()] },
  { name: "edge", schema: EdgeFrameSchema, frames: [...goldenEdgeFrames.keys()] }
] as const

describe("golden frames", () => {
  it("are the files of proto/testdata, no more and no fewer", () => {
    const files = goldenFiles()
    for (const [path, content] of files) assert.strictEqual(read(path), content, path)
    const present = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath}/${entry.name}`.split("/testdata/").at(-1)!.replace(/^\/+/, ""))
    assert.sameMembers(present, [...files.keys(), "README.md"])
  })

  for (const { name, schema, frames } of envelopes) {
    it.each([...frames])(`${name}/%s is the same as hex and as JSON`, (frame) => {
      const bytes = fromHex(read(`${name}/${frame}.hex`))
      const json = JSON.parse(read(`${name}/${frame}.json`)) as JsonValue
      assert.deepStrictEqual(toJson(schema, fromBinary(schema, bytes)), json)
      assert.deepStrictEqual(toBinary(schema, fromJson(schema, json)), bytes)
    })

    it(`framed/${name}-all holds each of them after its length`, () => {
      const names = JSON.parse(read(`framed/${name}-all.json`)) as ReadonlyArray<string>
      const parts = names.map((frame) => framed(fromHex(read(`${name}/${frame}.hex`))))
      assert.strictEqual(read(`framed/${name}-all.hex`), toHex(Buffer.concat(parts)))
      assert.sameMembers([...names], [...frames])
    })
  }

  it.each([...goldenNodeFrames.keys()])("node/%s is read and written by the codec", (frame) => {
    const bytes = fromHex(read(`node/${frame}.hex`))
    const decoded = decodeNodeFrame(bytes)
    assert.strictEqual(decoded.unknownFields, 0)
    if (decoded.kind === "run_event") {
      assert.deepStrictEqual(encodeRunEventFrame(decoded.handle, decoded.seq, decoded.event), bytes)
    } else if (decoded.kind === "pong") {
      assert.deepStrictEqual(encodePong(decoded.nonce), bytes)
    } else {
      assert.include(["register_request", "node_status", "goodbye"], decoded.kind)
    }
  })

  it.each([...goldenEdgeFrames.keys()])("edge/%s is read and written by the codec", (frame) => {
    const bytes = fromHex(read(`edge/${frame}.hex`))
    const decoded = decodeEdgeFrame(bytes)
    assert.strictEqual(decoded.unknownFields, 0)
    switch (decoded.kind) {
      case "ping":
        return assert.deepStrictEqual(encodePing(decoded.nonce), bytes)
      case "run_ack":
        return assert.deepStrictEqual(encodeAck(decoded.handle, decoded.seq), bytes)
      case "run_cancel":
        return assert.deepStrictEqual(encodeCancel(decoded.handle, decoded.code, decoded.reason), bytes)
      case "run_request": {
        const { input, ...fields } = decoded.value
        assert(input !== undefined)
        return assert.deepStrictEqual(encodeRunRequest({ ...fields, input }), bytes)
      }
      default:
        assert.include(["register_response", "drain", "goodbye"], decoded.kind)
    }
  })

  it("show every member of every oneof of the protocol", () => {
    const shown = new Set<string>()
    const expected = new Set<string>()
    for (const { name, schema, frames } of envelopes) {
      for (const member of membersOf(schema)) expected.add(member)
      for (const frame of frames) note(fromBinary(schema, fromHex(read(`${name}/${frame}.hex`))), shown)
    }
    assert.deepStrictEqual(
      [...expected].filter((member) => !shown.has(member)),
      []
    )
    assert.include([...expected], "iop.v1.ResponseFormat.jsonObject")
  })
})

/** Adds the members of oneofs that a message and all that it holds have, as `package.Message.member`. */
const note = (value: unknown, into: Set<string>): void => {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return
  for (const member of Object.values(value)) {
    const isOneof = "$typeName" in value && typeof member === "object" && member !== null && "case" in member
    if (isOneof) {
      into.add(`${value.$typeName}.${member.case}`)
      note("value" in member ? member.value : undefined, into)
    } else {
      note(member, into)
    }
  }
}

/** The members of all oneofs of a message and of what it holds, google.protobuf's own left out. */
const membersOf = (root: DescMessage): ReadonlyArray<string> => {
  const seen = new Set<string>()
  const left = [root]
  const members: Array<string> = []
  for (let message = left.pop(); message !== undefined; message = left.pop()) {
    if (seen.has(message.typeName) || message.typeName.startsWith("google.protobuf.")) continue
    seen.add(message.typeName)
    for (const field of message.fields) {
      // An optional field is a oneof of one to protobuf, not to a reader.
      if (field.oneof !== undefined) members.push(`${message.typeName}.${field.localName}`)
      if (field.message !== undefined) left.push(field.message)
    }
  }
  return members
}

describe("malformed frames", () => {
  const withoutLength = Object.entries(malformedFrames).filter(([, { framed }]) => !framed)

  it.each(withoutLength)("malformed/%s is told apart by the codec", (_name, { bytes, codec, receiver }) => {
    const decode = receiver === "edge" ? decodeNodeFrame : decodeEdgeFrame
    let outcome: string
    try {
      outcome = decode(bytes).kind
    } catch (error) {
      assert(error instanceof WireError)
      outcome = error.reason
    }
    assert.strictEqual(outcome, codec)
  })

  it("name rules that the specification has", () => {
    const specification = readFileSync(new URL("../README.md", folder), "utf8")
    for (const [name, { rule }] of Object.entries(malformedFrames)) {
      assert.include(specification, `| ${rule} |`, name)
    }
  })
})
