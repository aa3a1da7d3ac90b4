// How the command ends when it does not end well.
import { Data } from "effect"

/** Exit codes: 1 a rule is broken, 2 wrong usage, 3 what is to be judged cannot be reached. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly exitCode: 1 | 2 | 3
  /** For a person; empty when everything is said. */
  readonly message: string
}> {}
