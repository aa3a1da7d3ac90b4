// The HTTP status of what an edge refuses.
import { failureStatus } from "../http/failureStatus.ts"
import { HttpProblem } from "../http/HttpProblem.ts"
import { type FailureCode, failureCodes } from "../run/RunFailure.ts"
import type { EdgeProblem } from "./EdgeClient.ts"

const isFailureCode = (code: string): code is FailureCode =>
  (failureCodes as ReadonlyArray<string>).includes(code)

const statusOf = (code: string): number => {
  if (isFailureCode(code)) return failureStatus(code)
  if (code === "not_found") return 404
  return code === "too_late" ? 409 : 400
}

export const problemOfEdge = (problem: EdgeProblem): HttpProblem =>
  new HttpProblem({
    status: statusOf(problem.code),
    code: problem.code,
    message: problem.message,
    ...(problem.retryAfterMs === undefined ? {} : { retryAfterMs: problem.retryAfterMs })
  })
