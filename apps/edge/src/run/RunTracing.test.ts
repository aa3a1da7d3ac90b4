import { assert, it } from "@effect/vitest"
import { Effect, Layer, Option, Tracer } from "effect"
import { describe } from "vitest"
import { completed, join, record, started, text } from "../../test/fakeNodes.ts"
import { fixture, submit } from "../../test/runFixture.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import { makeRunTracing, RunTracing } from "./RunTracing.ts"

/** A tracer that keeps what it made. */
const recording = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return {
    spans,
    layer: Layer.effect(RunTracing, makeRunTracing).pipe(Layer.provide(Layer.succeed(Tracer.Tracer, tracer)))
  }
}

describe("tracing", () => {
  it.effect("makes one span per run, gives it to the node, and ends it with the outcome", () => {
    const { spans, layer } = recording()
    return Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      const traceId = "0af7651916cd43dd8448eb211c80319c"
      yield* submit({ traceparent: `00-${traceId}-b7ad6b7169203331-01` })
      const [span] = spans
      assert.strictEqual(link.last.dispatch.traceparent, `00-${traceId}-${span?.spanId}-01`)
      assert.strictEqual(Option.getOrUndefined(span!.parent)?.spanId, "b7ad6b7169203331")
      link.say(link.last, started, text("x"), completed)
      assert.strictEqual(span?.status._tag, "Ended")
      assert.strictEqual(span?.attributes.get("iop.outcome"), "completed")
      assert.strictEqual(spans.length, 1)
    }).pipe(Effect.provide(fixture([record("a")]).pipe(Layer.provide(layer))))
  })

  it.effect("ignores a traceparent that is none", () => {
    const { spans, layer } = recording()
    return Effect.gen(function* () {
      join(yield* NodeRegistry, "a")
      yield* submit({ traceparent: "00-zz-zz-01\r\nx: y" })
      assert.isTrue(Option.isNone(spans[0]!.parent))
    }).pipe(Effect.provide(fixture([record("a")]).pipe(Layer.provide(layer))))
  })

  it.effect("builds nothing when there is no tracer", () =>
    Effect.gen(function* () {
      const link = join(yield* NodeRegistry, "a")
      yield* submit()
      assert.strictEqual(link.last.dispatch.traceparent, "")
    }).pipe(Effect.provide(fixture([record("a")])))
  )
})
