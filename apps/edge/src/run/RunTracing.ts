// One span per run, never one per event. The node is given the span as its parent, so that what a backend reports
// hangs below it. Without a tracer nothing is built.
import { Clock, Context, Effect, Exit, Tracer } from "effect"
import type { RunSnapshot, RunSpec } from "./RunSpec.ts"

/** A run's span. */
export interface RunSpan {
  /** W3C traceparent for the node. */
  readonly traceparent: string
  readonly end: (run: RunSnapshot) => void
}

export interface RunTracing {
  readonly start: (runId: string, spec: RunSpec) => RunSpan | undefined
}

/** The tracing of the run service; without one no span is made. */
export const RunTracing = Context.Reference<RunTracing>("@iop/edge/run/RunTracing", {
  defaultValue: () => ({ start: () => undefined })
})

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** The caller's span, when it sent a well-formed traceparent. */
const parentOf = (traceparent: string | undefined): Tracer.ExternalSpan | undefined => {
  const match = TRACEPARENT.exec(traceparent ?? "")
  if (match === null) return undefined
  const [, traceId = "", spanId = "", flags = "00"] = match
  return Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 })
}

/** Spans through the tracer of the context. */
export const makeRunTracing: Effect.Effect<RunTracing> = Effect.map(
  Effect.all([Effect.context<never>(), Clock.clockWith(Effect.succeed)]),
  ([context, clock]) => ({
    start: (runId, spec) => {
      const parent = parentOf(spec.traceparent)
      const span = Effect.runSyncWith(context)(
        Effect.makeSpan("run", {
          kind: "server",
          attributes: {
            "iop.run": runId,
            "iop.adapter": spec.adapter,
            "iop.target": spec.target,
            "iop.caller": spec.caller
          },
          ...(parent === undefined ? { root: true } : { parent })
        })
      )
      return {
        traceparent: `00-${span.traceId}-${span.spanId}-${span.sampled ? "01" : "00"}`,
        end: (run) => {
          span.attribute("iop.outcome", run.failure?.code ?? run.phase)
          span.attribute("iop.attempts", run.attempt)
          if (run.node !== undefined) span.attribute("iop.node", run.node)
          if (run.usage?.inputTokens !== undefined) span.attribute("iop.tokens_in", run.usage.inputTokens)
          if (run.usage?.outputTokens !== undefined) span.attribute("iop.tokens_out", run.usage.outputTokens)
          span.end(
            clock.currentTimeNanosUnsafe(),
            run.failure === undefined ? Exit.void : Exit.fail(run.failure.code)
          )
        }
      }
    }
  })
)
