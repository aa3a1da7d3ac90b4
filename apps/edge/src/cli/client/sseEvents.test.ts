import { assert, describe, it } from "@effect/vitest"
import { type SseEvent, SseReader } from "./sseEvents.ts"

const stream = new TextEncoder().encode(
  `: comment\n\nid: 1\ndata: {"a":"ü"}\n\nevent: error\r\ndata: one\r\ndata: two\r\n\r\ndata:tight\n\nid: 4\n\n`
)
const events: ReadonlyArray<SseEvent> = [
  { event: "message", data: `{"a":"ü"}` },
  { event: "error", data: "one\ntwo" },
  { event: "message", data: "tight" }
]

describe("server-sent events", () => {
  it("are read whole", () => {
    assert.deepStrictEqual(new SseReader().push(stream), events)
  })

  it("are the same wherever the stream is cut", () => {
    for (let cut = 0; cut <= stream.length; cut++) {
      const reader = new SseReader()
      assert.deepStrictEqual(
        [...reader.push(stream.subarray(0, cut)), ...reader.push(stream.subarray(cut))],
        events
      )
    }
    const reader = new SseReader()
    assert.deepStrictEqual(
      [...stream].flatMap((byte) => reader.push(Uint8Array.of(byte))),
      events
    )
  })

  it("that never end are given up", () => {
    const reader = new SseReader()
    const piece = new Uint8Array(8 * 1024 * 1024).fill(0x61)
    assert.throws(() => {
      for (let pieces = 0; pieces < 10; pieces++) reader.push(piece)
    }, /without end/)
  })
})
