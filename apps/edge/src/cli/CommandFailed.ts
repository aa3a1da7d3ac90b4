// Why a command ends badly: one sentence for a person and the exit code for a script.
import { Data } from "effect"
import type { EdgeProblem } from "../admin/EdgeClient.ts"

/** What each exit code means. */
export const ExitCode = { good: 0, runFailed: 1, usage: 2, unreachable: 3, interrupted: 130 } as const

export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  /** Empty when everything was said already. */
  readonly message: string
  readonly exitCode: number
  /** The message names its own origin, as a list of places in a file does. */
  readonly bare?: boolean
}> {}

/** A mistake in what was asked for. */
export const usageError = (message: string): CommandFailed =>
  new CommandFailed({ message, exitCode: ExitCode.usage })

/** What is wrong with a configuration file, a line for each problem. */
export const configFailed = (message: string): CommandFailed =>
  new CommandFailed({ message, exitCode: ExitCode.usage, bare: true })

const usageCodes = new Set(["invalid_request", "invalid_input", "not_found", "invalid_api_key", "wrong_host"])

/** An edge's problem as the end of a command. */
export const failedBy = (problem: EdgeProblem): CommandFailed =>
  new CommandFailed({
    message: problem.message,
    exitCode:
      problem.code === "unreachable"
        ? ExitCode.unreachable
        : usageCodes.has(problem.code)
          ? ExitCode.usage
          : ExitCode.runFailed
  })
