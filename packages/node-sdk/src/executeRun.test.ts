// A run from the adapter's stream to its outbox, without a link.

import { create } from "@bufbuild/protobuf"
import { assert, describe, it } from "@effect/vitest"
import { RunInputSchema } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import { decodeNodeFrame } from "@iop/platform-common/protocol/nodeFrameWire"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { encodeRunEventFrame } from "@iop/platform-common/protocol/runEventWire"
import { Effect, Exit, Fiber, Stream } from "effect"
import { AdapterFailure } from "./Adapter.ts"
import { executeRun } from "./executeRun.ts"
import { RunOutbox } from "./RunOutbox.ts"
import { completed, textDelta } from "./textDelta.ts"

const execute = (stream: Stream.Stream<NodeRunEvent, AdapterFailure>, window = 1024 * 1024) => {
  const events: Array<NodeRunEvent> = []
  const outbox = new RunOutbox({
    encode: encodeRunEventFrame,
    handle: 1,
    window,
    send: (frame) => {
      const decoded = decodeNodeFrame(frame)
      if (decoded.kind === "run_event") events.push(decoded.event)
    }
  })
  const effect = executeRun({
    instance: { run: () => stream },
    run: {
      runId: "r",
      attempt: 1,
      target: "t",
      input: create(RunInputSchema),
      stream: true,
      session: undefined,
      deadlineMs: undefined,
      traceparent: undefined
    },
    outbox,
    maxFrameBytes: () => 1024 * 1024,
    stop: () => undefined
  })
  return { effect, events, outbox }
}

describe("the end of a run", () => {
  it.effect(
    "is the adapter's own, after which its stream is not pulled any more, and its finalizers run",
    () =>
      Effect.gen(function* () {
        let pulled = 0
        let released = 0
        const { effect, events } = execute(
          Stream.make<[NodeRunEvent, NodeRunEvent]>(textDelta("a"), {
            type: "completed",
            finishReason: "length"
          }).pipe(
            Stream.concat(Stream.fromEffect(Effect.sync(() => textDelta(String(pulled++))))),
            Stream.ensuring(Effect.sync(() => released++))
          )
        )
        assert.isTrue(Exit.isSuccess(yield* Effect.exit(effect)))
        assert.deepStrictEqual(events, [
          { type: "started" },
          textDelta("a"),
          { type: "completed", finishReason: "length" }
        ])
        assert.deepStrictEqual([pulled, released], [0, 1])
      })
  )

  it.effect("comes although the adapter's last word can't be put on the wire", () =>
    Effect.gen(function* () {
      const { effect, events } = execute(
        Stream.fail(
          new AdapterFailure({ code: "timeout", message: "late", retryable: true, retryAfterMs: -1.5 })
        )
      )
      yield* effect
      assert.strictEqual(events.length, 1)
      assert.strictEqual(events[0]?.type, "failed")
    })
  )

  it.effect("is a failure of the run when an event is none", () =>
    Effect.gen(function* () {
      const { effect, events } = execute(Stream.make(textDelta("a"), textDelta("b", -1), textDelta("c")))
      yield* effect
      assert.deepStrictEqual(
        events.map(({ type }) => type),
        ["started", "delta", "failed"]
      )
      assert.deepInclude(events.at(-1), { code: "limit", retryable: false })
    })
  )
})

describe("a full window", () => {
  it.effect("stops the pull until an acknowledgement makes room", () =>
    Effect.gen(function* () {
      let pulled = 0
      const { effect, events, outbox } = execute(
        Stream.range(1, 5).pipe(
          Stream.rechunk(1),
          Stream.map((number) => {
            pulled++
            return textDelta(`${number}${"x".repeat(50)}`)
          })
        ),
        100
      )
      const fiber = yield* Effect.forkChild(effect)
      yield* Effect.yieldNow
      while (!outbox.settled) {
        assert.isAtMost(pulled, events.length + 1)
        assert.isTrue(outbox.ack(outbox.firstUnackedSeq))
        yield* Effect.yieldNow
      }
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        events.map((event) => (event.type === "delta" && event.kind === "text" ? event.text[0] : event.type)),
        ["started", "1", "2", "3", "4", "5", completed.type]
      )
    })
  )
})
