// Why a run ends badly, in the edge's words. Every surface maps these codes and no others.
import { Data } from "effect"

/** What went wrong, for programs. docs/operations.md says what to do about each. */
export const failureCodes = [
  "target_not_found",
  "no_node_available",
  "queue_full",
  "queue_timeout",
  "first_event_timeout",
  "idle_timeout",
  "run_timeout",
  "node_lost",
  "adapter_error",
  "slow_consumer",
  "draining",
  "protocol_error",
  "invalid_input",
  "internal"
] as const

export type FailureCode = (typeof failureCodes)[number]

/** The failure of a run as its consumers and its record see it. */
export interface RunFailure {
  readonly code: FailureCode
  /** For a person: what, where, measured value, what to do. */
  readonly message: string
  /** Whether the caller may sensibly submit the same again. */
  readonly retryable: boolean
  readonly retryAfterMs?: number
  /** Status and code of the node's backend, where it has them. */
  readonly backendStatus?: number
  readonly backendCode?: string
}

/** A run that was refused when it was submitted: it never became a run. */
export class RunRefused extends Data.TaggedError("RunRefused")<{ readonly failure: RunFailure }> {
  override get message() {
    return `${this.failure.code}: ${this.failure.message}`
  }
}

/** No such run in the history. */
export class RunNotFound extends Data.TaggedError("RunNotFound")<{ readonly runId: string }> {
  override get message() {
    return `run ${this.runId} is not known: it never was, or it is older than the history keeps`
  }
}

/** The events that were asked for are no longer kept. */
export class TooLate extends Data.TaggedError("TooLate")<{
  readonly runId: string
  readonly after: number
  readonly oldest: number
}> {
  override get message() {
    return `too late: run ${this.runId} keeps events from ${this.oldest} on, ${this.after + 1} was asked for`
  }
}
