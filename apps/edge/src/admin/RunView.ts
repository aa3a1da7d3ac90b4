// A run, and an explanation of what would become of one, as the admin API, the CLI and the console show them.
import type { TokenUsage } from "@iop/platform-common/protocol/RunEvent"
import { Schema } from "effect"
import type { Explanation } from "../run/Explanation.ts"
import { failureCodes, type RunFailure } from "../run/RunFailure.ts"
import type { NodeVerdict, RunSnapshot } from "../run/RunSpec.ts"

export const UsageView = Schema.Struct({
  input_tokens: Schema.optionalKey(Schema.Finite),
  output_tokens: Schema.optionalKey(Schema.Finite),
  cached_input_tokens: Schema.optionalKey(Schema.Finite),
  reasoning_tokens: Schema.optionalKey(Schema.Finite)
}).annotate({ identifier: "Usage", description: "Tokens; what the backend did not say is absent." })
export type UsageView = typeof UsageView.Type

export const FailureView = Schema.Struct({
  code: Schema.Literals(failureCodes),
  message: Schema.String,
  retryable: Schema.Boolean,
  retry_after_ms: Schema.optionalKey(Schema.Finite),
  backend_status: Schema.optionalKey(Schema.Finite),
  backend_code: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Failure" })
export type FailureView = typeof FailureView.Type

export const VerdictView = Schema.Struct({
  node: Schema.String,
  alias: Schema.String,
  chosen: Schema.Boolean,
  reason: Schema.String,
  message: Schema.String
}).annotate({ identifier: "Verdict", description: "Why a node was or was not chosen." })

export const RunView = Schema.Struct({
  id: Schema.String,
  adapter: Schema.String,
  target: Schema.String,
  caller: Schema.String,
  session: Schema.optionalKey(Schema.String),
  detached: Schema.Boolean,
  phase: Schema.Literals([
    "queued",
    "dispatched",
    "started",
    "streaming",
    "cancelling",
    "completed",
    "failed",
    "cancelled"
  ]),
  node: Schema.optionalKey(Schema.String),
  attempt: Schema.Int,
  attempts: Schema.Array(
    Schema.Struct({
      attempt: Schema.Int,
      node: Schema.String,
      duration_ms: Schema.optionalKey(Schema.Finite),
      outcome: Schema.optionalKey(Schema.String)
    })
  ),
  submitted_at: Schema.String,
  queue_ms: Schema.optionalKey(Schema.Finite),
  first_event_ms: Schema.optionalKey(Schema.Finite),
  total_ms: Schema.Finite,
  events: Schema.Int,
  usage: Schema.optionalKey(UsageView),
  finish_reason: Schema.optionalKey(Schema.String),
  failure: Schema.optionalKey(FailureView),
  cancel_reason: Schema.optionalKey(Schema.String),
  slot_held: Schema.Boolean.annotate({
    description: "The run is over but its node has not answered the cancel: the slot is still taken."
  }),
  selection: Schema.Array(VerdictView)
}).annotate({ identifier: "Run" })
export type RunView = typeof RunView.Type

export const ExplanationView = Schema.Struct({
  adapter: Schema.String,
  target: Schema.String,
  chosen: Schema.optionalKey(Schema.String).annotateKey({
    description: "Alias of the node that would get it now."
  }),
  otherwise: Schema.optionalKey(
    Schema.Union([
      Schema.Struct({ waits: Schema.Literal(true), ahead: Schema.Int }),
      Schema.Struct({ waits: Schema.Literal(false), code: Schema.String, message: Schema.String })
    ])
  ),
  nodes: Schema.Array(VerdictView)
}).annotate({ identifier: "Explanation" })
export type ExplanationView = typeof ExplanationView.Type

export const usageView = (usage: TokenUsage): UsageView => ({
  ...(usage.inputTokens === undefined ? {} : { input_tokens: usage.inputTokens }),
  ...(usage.outputTokens === undefined ? {} : { output_tokens: usage.outputTokens }),
  ...(usage.cachedInputTokens === undefined ? {} : { cached_input_tokens: usage.cachedInputTokens }),
  ...(usage.reasoningTokens === undefined ? {} : { reasoning_tokens: usage.reasoningTokens })
})

export const failureView = (failure: RunFailure): FailureView => ({
  code: failure.code,
  message: failure.message,
  retryable: failure.retryable,
  ...(failure.retryAfterMs === undefined ? {} : { retry_after_ms: failure.retryAfterMs }),
  ...(failure.backendStatus === undefined ? {} : { backend_status: failure.backendStatus }),
  ...(failure.backendCode === undefined ? {} : { backend_code: failure.backendCode })
})

const verdictView = ({ node, alias, chosen, reason, message }: NodeVerdict): typeof VerdictView.Type => ({
  node,
  alias,
  chosen,
  reason,
  message
})

/** Milliseconds with three decimals: more is noise of the clock. */
const ms = (value: number): number => Math.round(value * 1000) / 1000

export const runView = (run: RunSnapshot): RunView => ({
  id: run.id,
  adapter: run.adapter,
  target: run.target,
  caller: run.caller,
  ...(run.session === undefined ? {} : { session: run.session }),
  detached: run.detached,
  phase: run.phase,
  ...(run.node === undefined ? {} : { node: run.node }),
  attempt: run.attempt,
  attempts: run.attempts.map((attempt) => ({
    attempt: attempt.attempt,
    node: attempt.node,
    ...(attempt.durationMs === undefined ? {} : { duration_ms: ms(attempt.durationMs) }),
    ...(attempt.outcome === undefined ? {} : { outcome: attempt.outcome })
  })),
  submitted_at: run.submittedAt,
  ...(run.queueMs === undefined ? {} : { queue_ms: ms(run.queueMs) }),
  ...(run.firstEventMs === undefined ? {} : { first_event_ms: ms(run.firstEventMs) }),
  total_ms: ms(run.totalMs),
  events: run.events,
  ...(run.usage === undefined ? {} : { usage: usageView(run.usage) }),
  ...(run.finishReason === undefined ? {} : { finish_reason: run.finishReason }),
  ...(run.failure === undefined ? {} : { failure: failureView(run.failure) }),
  ...(run.cancelReason === undefined ? {} : { cancel_reason: run.cancelReason }),
  slot_held: run.slotHeld,
  selection: run.selection.map(verdictView)
})

export const explanationView = (explanation: Explanation): ExplanationView => ({
  adapter: explanation.adapter,
  target: explanation.target,
  ...(explanation.chosen === undefined ? {} : { chosen: explanation.chosen }),
  ...(explanation.otherwise === undefined
    ? {}
    : {
        otherwise: explanation.otherwise.waits
          ? { waits: true as const, ahead: explanation.otherwise.ahead }
          : {
              waits: false as const,
              code: explanation.otherwise.failure.code,
              message: explanation.otherwise.failure.message
            }
      }),
  nodes: explanation.nodes.map(verdictView)
})
