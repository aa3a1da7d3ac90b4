// An event of a run as JSON: one flat object with its place in the run (`seq`), its `type` and its fields in snake_case.
import type { DeltaEvent, TextDelta } from "@iop/platform-common/protocol/RunEvent"
import { Schema } from "effect"
import type { RelayedEvent } from "../run/RunEvent.ts"
import { FailureView, failureView, UsageView, usageView } from "./RunView.ts"

const seq = { seq: Schema.Int }
const delta = { ...seq, type: Schema.Literal("delta"), choice: Schema.Int }

const Logprob = Schema.Struct({
  token: Schema.String,
  logprob: Schema.Finite,
  bytes: Schema.optionalKey(Schema.Array(Schema.Int)),
  top: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        token: Schema.String,
        logprob: Schema.Finite,
        bytes: Schema.optionalKey(Schema.Array(Schema.Int))
      })
    )
  )
})

export const RunEventView = Schema.Union([
  Schema.Struct({ ...seq, type: Schema.Literal("queued"), ahead: Schema.Int }),
  Schema.Struct({
    ...seq,
    type: Schema.Literal("dispatched"),
    node: Schema.String,
    attempt: Schema.Int,
    queue_ms: Schema.Finite
  }),
  Schema.Struct({
    ...seq,
    type: Schema.Literal("interrupted"),
    node: Schema.String,
    reason: Schema.String,
    grace_ms: Schema.Finite
  }),
  Schema.Struct({ ...seq, type: Schema.Literal("resumed"), node: Schema.String }),
  Schema.Struct({
    ...seq,
    type: Schema.Literal("started"),
    backend_target: Schema.optionalKey(Schema.String)
  }),
  Schema.Struct({
    ...delta,
    kind: Schema.Literals(["text", "reasoning", "refusal"]),
    text: Schema.String,
    logprobs: Schema.optionalKey(Schema.Array(Logprob))
  }),
  Schema.Struct({
    ...delta,
    kind: Schema.Literal("tool_call"),
    index: Schema.Int,
    id: Schema.optionalKey(Schema.String),
    name: Schema.optionalKey(Schema.String),
    arguments: Schema.String
  }),
  Schema.Struct({
    ...delta,
    kind: Schema.Literal("output"),
    channel: Schema.Literals(["stdout", "stderr"]),
    text: Schema.String
  }),
  Schema.Struct({
    ...delta,
    kind: Schema.Literal("embedding"),
    index: Schema.Int,
    values: Schema.Array(Schema.Finite)
  }),
  Schema.Struct({ ...seq, type: Schema.Literal("usage"), usage: UsageView }),
  Schema.Struct({
    ...seq,
    type: Schema.Literal("completed"),
    finish_reason: Schema.String,
    usage: Schema.optionalKey(UsageView),
    choice_finish_reasons: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
    raw_finish_reason: Schema.optionalKey(Schema.String)
  }),
  Schema.Struct({ ...seq, type: Schema.Literal("failed"), ...FailureView.fields }),
  Schema.Struct({ ...seq, type: Schema.Literal("cancelled"), reason: Schema.String })
]).annotate({ identifier: "RunEvent" })
export type RunEventView = typeof RunEventView.Type

/** Whether the event is the run's last. */
export const endsRun = (event: RunEventView): boolean =>
  event.type === "completed" || event.type === "failed" || event.type === "cancelled"

export const runEventView = ({ seq, event }: RelayedEvent): RunEventView => {
  switch (event.type) {
    case "queued":
      return { seq, type: "queued", ahead: event.ahead }
    case "dispatched":
      return {
        seq,
        type: "dispatched",
        node: event.node,
        attempt: event.attempt,
        queue_ms: Math.round(event.queueMs * 1000) / 1000
      }
    case "interrupted":
      return { seq, type: "interrupted", node: event.node, reason: event.reason, grace_ms: event.graceMs }
    case "resumed":
      return { seq, type: "resumed", node: event.node }
    case "started":
      return {
        seq,
        type: "started",
        ...(event.backendTarget === undefined ? {} : { backend_target: event.backendTarget })
      }
    case "delta":
      return deltaView(seq, event)
    case "usage":
      return { seq, type: "usage", usage: usageView(event.usage) }
    case "completed":
      return {
        seq,
        type: "completed",
        finish_reason: event.finishReason,
        ...(event.usage === undefined ? {} : { usage: usageView(event.usage) }),
        ...(event.choiceFinishReasons === undefined
          ? {}
          : { choice_finish_reasons: event.choiceFinishReasons }),
        ...(event.rawFinishReason === undefined ? {} : { raw_finish_reason: event.rawFinishReason })
      }
    case "failed":
      return { seq, type: "failed", ...failureView(event) }
    case "cancelled":
      return { seq, type: "cancelled", reason: event.reason }
  }
}

const deltaView = (seq: number, event: DeltaEvent): RunEventView => {
  const base = { seq, type: "delta", choice: event.choice } as const
  switch (event.kind) {
    case "tool_call":
      return {
        ...base,
        kind: "tool_call",
        index: event.index,
        ...(event.id === undefined ? {} : { id: event.id }),
        ...(event.name === undefined ? {} : { name: event.name }),
        arguments: event.arguments
      }
    case "output":
      return { ...base, kind: "output", channel: event.channel, text: event.text }
    case "embedding":
      return { ...base, kind: "embedding", index: event.index, values: event.values }
    default:
      return {
        ...base,
        kind: event.kind,
        text: event.text,
        ...(event.logprobs === undefined ? {} : { logprobs: logprobsView(event.logprobs) })
      }
  }
}

const bytesView = (bytes: Uint8Array | undefined) => (bytes === undefined ? {} : { bytes: [...bytes] })

const logprobsView = (logprobs: NonNullable<TextDelta["logprobs"]>): ReadonlyArray<typeof Logprob.Type> =>
  logprobs.map(({ token, logprob, bytes, top }) => ({
    token,
    logprob,
    ...bytesView(bytes),
    ...(top === undefined
      ? {}
      : {
          top: top.map((entry) => ({ token: entry.token, logprob: entry.logprob, ...bytesView(entry.bytes) }))
        })
  }))
