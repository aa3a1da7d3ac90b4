import { assert, describe, it } from "@effect/vitest"
import { decodeNodeFrame } from "@iop/platform-common/protocol/nodeFrameWire"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { encodeRunEventFrame } from "@iop/platform-common/protocol/runEventWire"
import { Effect, Schema } from "effect"
import { RunOutbox } from "./RunOutbox.ts"
import { completed, textDelta } from "./textDelta.ts"

const make = (window: number, handle = 1) => {
  const sent: Array<Uint8Array> = []
  const outbox = new RunOutbox({
    encode: encodeRunEventFrame,
    handle,
    window,
    send: (frame) => sent.push(frame)
  })
  const seqs = () =>
    sent.map((frame) => {
      const decoded = decodeNodeFrame(frame)
      return decoded.kind === "run_event" ? decoded.seq : -1
    })
  return { outbox, sent, seqs }
}

const frameBytes = (event: NodeRunEvent, seq = 1, handle = 1) =>
  encodeRunEventFrame(handle, seq, event).length

describe("the window", () => {
  it("takes events while their frames fit, and again after an acknowledgement", () => {
    const event = textDelta("12345678")
    const { outbox, seqs } = make(2 * frameBytes(event))
    assert.deepStrictEqual(
      [outbox.offer(event), outbox.offer(event), outbox.offer(event)],
      [true, true, false]
    )
    assert.deepStrictEqual(seqs(), [1, 2])
    let room = 0
    outbox.onRoom(() => room++)
    outbox.ack(1)
    assert.strictEqual(room, 1)
    assert.isTrue(outbox.offer(event))
    assert.deepStrictEqual(seqs(), [1, 2, 3])
  })

  it("EV10 never blocks a single event that is larger than itself", () => {
    const { outbox, seqs } = make(16)
    assert.isTrue(outbox.offer(textDelta("x".repeat(512 * 1024))))
    assert.isFalse(outbox.offer(textDelta("y")))
    outbox.ack(1)
    assert.isTrue(outbox.offer(textDelta("y")))
    assert.deepStrictEqual(seqs(), [1, 2])
  })

  it("takes the terminal event without room, and sends it when there is", () => {
    const event = textDelta("12345678")
    const { outbox, seqs } = make(frameBytes(event))
    outbox.offer(event)
    assert.isTrue(outbox.offer(completed))
    assert.deepStrictEqual(seqs(), [1])
    assert.isTrue(outbox.ended)
    assert.isFalse(outbox.settled)
    outbox.ack(1)
    assert.deepStrictEqual(seqs(), [1, 2])
    outbox.ack(2)
    assert.isTrue(outbox.settled)
    assert.throws(() => outbox.offer(event), /after the run's terminal event/)
  })

  it("holds nothing of what was acknowledged", () => {
    const { outbox } = make(1024 * 1024)
    for (let index = 0; index < 5_000; index++) {
      outbox.offer(textDelta("x".repeat(100)))
      outbox.ack(index + 1)
    }
    assert.strictEqual(outbox.keptBytes, 0)
    assert.strictEqual(outbox.firstUnackedSeq, 5_001)
  })
})

describe("acknowledgements", () => {
  it("ignores old and repeated ones, and tells of one for an event that was never sent", () => {
    const { outbox } = make(1_000)
    outbox.offer(textDelta("a"))
    outbox.offer(textDelta("b"))
    assert.isTrue(outbox.ack(2))
    assert.isTrue(outbox.ack(1))
    assert.isTrue(outbox.ack(2))
    assert.isFalse(outbox.ack(3))
    assert.strictEqual(outbox.firstUnackedSeq, 3)
  })
})

describe("resumption", () => {
  it("sends again what the edge does not have, under the new handle and within the new window", () => {
    const { outbox } = make(1_000)
    for (const text of ["a", "b", "c", "d"]) outbox.offer(textDelta(text))
    outbox.detach()
    const again: Array<Uint8Array> = []
    const window = 2 * frameBytes(textDelta("c"), 3, 70_000)
    assert.isTrue(outbox.resume({ afterSeq: 1, handle: 70_000, window, send: (frame) => again.push(frame) }))
    const decoded = () =>
      again.map((frame) => {
        const event = decodeNodeFrame(frame)
        return event.kind === "run_event" ? [event.handle, event.seq] : []
      })
    assert.deepStrictEqual(decoded(), [
      [70_000, 2],
      [70_000, 3]
    ])
    outbox.ack(2)
    assert.deepStrictEqual(decoded().at(-1), [70_000, 4])
  })

  it("does not let a small new event overtake what is still to be sent again", () => {
    const { outbox } = make(10_000)
    for (const size of [10, 900]) outbox.offer(textDelta("x".repeat(size)))
    outbox.detach()
    const again: Array<number> = []
    const send = (frame: Uint8Array) => {
      const event = decodeNodeFrame(frame)
      if (event.kind === "run_event") again.push(event.seq)
    }
    assert.isTrue(outbox.resume({ afterSeq: 0, handle: 2, window: 100, send }))
    outbox.offer(completed)
    assert.deepStrictEqual(again, [1])
    outbox.ack(1)
    assert.deepStrictEqual(again, [1, 2])
    outbox.ack(2)
    assert.deepStrictEqual(again, [1, 2, 3])
  })

  it("EV12 refuses to go on from an event that it no longer holds or never had", () => {
    const { outbox } = make(1_000)
    for (const text of ["a", "b", "c"]) outbox.offer(textDelta(text))
    outbox.ack(2)
    outbox.detach()
    const send = () => undefined
    assert.isFalse(outbox.resume({ afterSeq: 1, handle: 2, window: 1_000, send }))
    assert.isFalse(outbox.resume({ afterSeq: 4, handle: 2, window: 1_000, send }))
    assert.isTrue(outbox.resume({ afterSeq: 3, handle: 2, window: 1_000, send }))
    assert.strictEqual(outbox.keptBytes, 0)
  })

  it("takes events without a link up to the window", () => {
    const event = textDelta("12345678")
    const { outbox, seqs } = make(2 * frameBytes(event))
    outbox.detach()
    assert.deepStrictEqual(
      [outbox.offer(event), outbox.offer(event), outbox.offer(event)],
      [true, true, false]
    )
    assert.deepStrictEqual(seqs(), [])
  })
})

/** What may happen to a run, one number per step. */
const Steps = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 999 }))).check(
  Schema.isMaxLength(300)
)

describe("any interleaving", () => {
  it.effect.prop(
    "delivers every event once and in order, within the window, whatever is lost",
    { steps: Steps, window: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 200 })) },
    ({ steps, window }) =>
      Effect.sync(() => {
        // Frames that were sent and did not arrive yet; a lost link drops them. Acks travel at once or are lost.
        let wire: Array<Uint8Array> = []
        let linked = true
        let handle = 1
        let expectedHandle = 1
        let produced = 0
        let inFlight = 0
        const delivered: Array<string> = []
        const frameSizes = new Map<number, number>()
        let acked = 0
        const send = (frame: Uint8Array) => {
          const decoded = decodeNodeFrame(frame)
          assert.strictEqual(decoded.kind, "run_event")
          if (decoded.kind !== "run_event") return
          assert.strictEqual(decoded.handle, handle)
          assert.isTrue(inFlight === 0 || inFlight + frame.length <= window, "the window was exceeded")
          inFlight += frame.length
          frameSizes.set(decoded.seq, frame.length)
          wire.push(frame)
        }
        const outbox = new RunOutbox({ encode: encodeRunEventFrame, handle, window, send })
        const arrive = (count: number) => {
          for (const frame of wire.splice(0, count)) {
            const decoded = decodeNodeFrame(frame)
            if (decoded.kind !== "run_event") throw new Error("not an event")
            assert.isAtMost(decoded.seq, delivered.length + 1, "a gap")
            if (decoded.seq <= delivered.length) continue
            delivered.push(
              decoded.event.type === "delta" && "text" in decoded.event ? decoded.event.text : "end"
            )
          }
        }
        const ack = () => {
          for (let seq = acked + 1; seq <= delivered.length; seq++) inFlight -= frameSizes.get(seq) ?? 0
          acked = delivered.length
          assert.isTrue(outbox.ack(acked))
        }
        const relink = () => {
          handle = ++expectedHandle * 50
          inFlight = 0
          acked = delivered.length
          assert.isTrue(outbox.resume({ afterSeq: delivered.length, handle, window, send }))
          linked = true
        }
        const cut = () => {
          outbox.detach()
          wire = []
          linked = false
        }
        for (const step of steps) {
          if (step < 400) {
            if (outbox.offer(textDelta(`${produced}${"x".repeat(step % 60)}`))) produced++
          } else if (step < 650) arrive(step % 7)
          else if (step < 850) linked && ack()
          else if (linked) cut()
          else relink()
        }
        outbox.offer(completed)
        if (!linked) relink()
        for (let round = 0; !outbox.settled; round++) {
          assert.isBelow(round, 2_000, "the run never settles")
          arrive(wire.length)
          ack()
        }
        assert.deepStrictEqual(
          delivered.map((text) => (text === "end" ? text : Number.parseInt(text, 10))),
          [...Array.from({ length: produced }, (_, index) => index), "end"]
        )
      }),
    { arbitrary: { runs: 500 } }
  )
})
