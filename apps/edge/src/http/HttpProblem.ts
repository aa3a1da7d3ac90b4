// What an HTTP request is answered instead of what it asked for. Thrown and caught inside the HTTP boundary; each
// surface writes it in its own shape.
import { Data } from "effect"
import type { RunFailure } from "../run/RunFailure.ts"
import { failureStatus } from "./failureStatus.ts"

export class HttpProblem extends Data.TaggedError("HttpProblem")<{
  readonly status: number
  /** For programs. */
  readonly code: string
  /** For a person; never a secret, bounded. */
  readonly message: string
  readonly retryAfterMs?: number
  /** Nothing more is read from this connection. */
  readonly close?: boolean
  /** Methods that would have been right (405). */
  readonly allow?: ReadonlyArray<string>
}> {}

/** The problem that a run's failure is to its caller, while its status is still open. */
export const problemOfFailure = (failure: RunFailure): HttpProblem =>
  new HttpProblem({
    status: failureStatus(failure.code),
    code: failure.code,
    message: failure.message,
    ...(failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs })
  })

/** Seconds for Retry-After: whole, at least one; 503 and 429 always have it. */
export const retryAfterSeconds = (problem: HttpProblem): number | undefined => {
  if (problem.retryAfterMs !== undefined) return Math.max(1, Math.ceil(problem.retryAfterMs / 1000))
  return problem.status === 503 || problem.status === 429 ? 1 : undefined
}
