// One structured line per run at its end, and one per change of a circuit. Never a prompt, never an output.

import { boundedText } from "@iop/platform-common/observability/sanitize"
import { Effect } from "effect"
import type { RunObserver } from "./RunObserver.ts"
import type { RunSnapshot } from "./RunSpec.ts"

/** A reason that a node gave is cut to this many characters in a log line. */
const MAX_REASON_CHARS = 500

/** The fields of the line: ids, durations in milliseconds, tokens, outcome and reason. */
export const runLogFields = (run: RunSnapshot): Record<string, unknown> => ({
  run: run.id,
  caller: run.caller,
  adapter: run.adapter,
  target: boundedText(run.target, MAX_REASON_CHARS),
  node: run.node ?? "none",
  attempt: run.attempt,
  queue_ms: run.queueMs,
  first_event_ms: run.firstEventMs,
  total_ms: run.totalMs,
  tokens_in: run.usage?.inputTokens,
  tokens_out: run.usage?.outputTokens,
  outcome: run.failure?.code ?? run.phase,
  reason: boundedText(run.failure?.message ?? run.cancelReason ?? run.finishReason ?? "", MAX_REASON_CHARS)
})

/** The observer, with the log lines; `fork` runs an effect on the side. */
export const withRunLog = (
  observer: RunObserver,
  fork: (effect: Effect.Effect<void>) => unknown
): RunObserver => ({
  ...observer,
  finished: (run) => {
    observer.finished(run)
    const line = Effect.annotateLogs(Effect.logInfo("run ended"), runLogFields(run))
    fork(line)
  },
  circuit: (node, adapter, open, reason) => {
    observer.circuit(node, adapter, open, reason)
    const line = open ? Effect.logWarning("circuit opened") : Effect.logInfo("circuit closed")
    fork(Effect.annotateLogs(line, { node, adapter, reason: boundedText(reason, MAX_REASON_CHARS) }))
  }
})
