// What one small delta costs to encode and decode, by hand and with protobuf-es. Prints nanoseconds, the best of
// several rounds; it judges nothing.

import { fromBinary } from "@bufbuild/protobuf"
import { NodeFrameSchema } from "../src/gen/iop/v1/frame_pb.ts"
import { decodeEdgeFrame, encodeAck } from "../src/protocol/edgeFrameWire.ts"
import { decodeNodeFrame } from "../src/protocol/nodeFrameWire.ts"
import type { NodeRunEvent } from "../src/protocol/RunEvent.ts"
import { encodeRunEventFrame } from "../src/protocol/runEventWire.ts"
import { runEventFrameByLibrary } from "../src/protocol/testing/runEventToMessage.ts"

const ROUNDS = 7
const OPERATIONS = 300_000

/** Kept and printed, so that the compiler cannot leave the work out. */
let sink = 0

const best = (operation: (index: number) => number): number => {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.hrtime.bigint()
    for (let index = 0; index < OPERATIONS; index++) sink += operation(index)
    least = Math.min(least, Number(process.hrtime.bigint() - start) / OPERATIONS)
  }
  return least
}

const line = (name: string, byHand: number, byLibrary: number): void => {
  const figures = [byHand, byLibrary].map((value) => `${value.toFixed(0)} ns`.padStart(9))
  console.log(`${name.padEnd(34)}${figures.join("")}${`${(byLibrary / byHand).toFixed(1)}x`.padStart(8)}`)
}

const delta = (text: string): NodeRunEvent => ({ type: "delta", choice: 0, kind: "text", text })

console.log(`${"".padEnd(34)}${"by hand".padStart(9)}${"library".padStart(9)}`)
for (const [name, event] of [
  ["delta of 5 ASCII letters", delta(" word")],
  ["delta of 2 Korean letters", delta("안녕")],
  ["delta of 200 ASCII letters", delta("x".repeat(200))]
] as const) {
  line(
    `encode, ${name}`,
    best((index) => encodeRunEventFrame(7, index + 1, event).length),
    best((index) => runEventFrameByLibrary(7, index + 1, event).length)
  )
  const bytes = encodeRunEventFrame(7, 1000, event)
  line(
    `decode, ${name}`,
    best(() => decodeNodeFrame(bytes).unknownFields),
    best(() => fromBinary(NodeFrameSchema, bytes).body.case?.length ?? 0)
  )
}
const ack = encodeAck(7, 1000)
console.log(
  `acknowledgement: encode ${best((index) => encodeAck(7, index).length).toFixed(0)} ns, decode ${best(() => decodeEdgeFrame(ack).unknownFields).toFixed(0)} ns`
)
console.log(`(${sink} operations' worth of results)`)
