// The run limits of a configuration, in the units that plain code counts in.
import { getHeapStatistics } from "node:v8"
import type { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { Duration } from "effect"
import type { CircuitLimits } from "../node/Circuit.ts"
import type { RunServiceLimits } from "./RunLimits.ts"

/** Durations as milliseconds, sizes as bytes. */
export const runLimits = ({ link, runs }: Pick<EdgeConfig, "link" | "runs">): RunServiceLimits => ({
  queueMs: Duration.toMillis(runs.queue_timeout),
  firstEventMs: Duration.toMillis(runs.first_event_timeout),
  idleMs: Duration.toMillis(runs.idle_timeout),
  totalMs: runs.total_timeout === undefined ? undefined : Duration.toMillis(runs.total_timeout),
  cancelMs: Duration.toMillis(runs.cancel_timeout),
  resumeGraceMs: Duration.toMillis(link.resume_grace),
  maxAttempts: runs.max_attempts,
  runWindowBytes: link.run_window,
  relay: { logBytes: runs.relay_log, consumerMs: Duration.toMillis(runs.consumer_timeout) },
  heapBytes: getHeapStatistics().heap_size_limit,
  queueLimit: runs.queue_limit,
  history: runs.history,
  fastFailureMs: Duration.toMillis(runs.circuit.fast)
})

export const circuitLimits = ({ runs }: Pick<EdgeConfig, "runs">): CircuitLimits => ({
  failures: runs.circuit.failures,
  windowMs: Duration.toMillis(runs.circuit.window),
  openForMs: Duration.toMillis(runs.circuit.open_for)
})
