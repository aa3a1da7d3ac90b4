// The HTTP status of each failure code, in one place for every surface.
import type { FailureCode } from "../run/RunFailure.ts"

const statuses: Readonly<Record<FailureCode, number>> = {
  target_not_found: 404,
  no_node_available: 503,
  queue_full: 503,
  queue_timeout: 504,
  first_event_timeout: 504,
  idle_timeout: 504,
  run_timeout: 504,
  node_lost: 502,
  adapter_error: 502,
  slow_consumer: 408,
  draining: 503,
  protocol_error: 502,
  invalid_input: 400,
  internal: 500
}

/** The status for a run that failed before its answer began. */
export const failureStatus = (code: FailureCode): number => statuses[code]
