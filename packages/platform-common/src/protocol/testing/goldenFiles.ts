// The files of proto/testdata as their contents: what the script writes and the test expects.

import { type DescMessage, type MessageShape, toBinary, toJson } from "@bufbuild/protobuf"
import { EdgeFrameSchema, NodeFrameSchema } from "../../gen/iop/v1/frame_pb.ts"
import { goldenEdgeFrames, goldenNodeFrames } from "./goldenFrames.ts"
import { malformedFrames } from "./malformedFrames.ts"

/** Hex digits in lines of 32 bytes. */
export const toHex = (bytes: Uint8Array): string => {
  const digits = Buffer.from(bytes).toString("hex")
  return `${(digits.match(/.{1,64}/g) ?? []).join("\n")}\n`
}

/** The bytes of hex digits; white space between them means nothing. */
export const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ""), "hex"))

/** A frame with its length before it. */
export const framed = (bytes: Uint8Array): Uint8Array => {
  const made = new Uint8Array(4 + bytes.length)
  new DataView(made.buffer).setUint32(0, bytes.length)
  made.set(bytes, 4)
  return made
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** The contents of the files of proto/testdata, by their path within it; the README is not among them. */
export const goldenFiles = (): Map<string, string> => {
  const files = new Map<string, string>()
  addFrames(files, "node", NodeFrameSchema, goldenNodeFrames)
  addFrames(files, "edge", EdgeFrameSchema, goldenEdgeFrames)
  for (const [name, { bytes, ...about }] of Object.entries(malformedFrames)) {
    files.set(`malformed/${name}.hex`, toHex(bytes))
    files.set(`malformed/${name}.json`, json(about))
  }
  return files
}

const addFrames = <Desc extends DescMessage>(
  files: Map<string, string>,
  folder: string,
  schema: Desc,
  frames: ReadonlyMap<string, MessageShape<Desc>>
): void => {
  const stream: Array<Uint8Array> = []
  for (const [name, message] of frames) {
    const bytes = toBinary(schema, message)
    stream.push(framed(bytes))
    files.set(`${folder}/${name}.hex`, toHex(bytes))
    files.set(`${folder}/${name}.json`, json(toJson(schema, message)))
  }
  files.set(`framed/${folder}-all.hex`, toHex(Buffer.concat(stream)))
  files.set(`framed/${folder}-all.json`, json([...frames.keys()]))
}
