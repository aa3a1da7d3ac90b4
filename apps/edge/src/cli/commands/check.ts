// `edge check FILE`: everything that is wrong with a configuration file, without starting anything.
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"

export const checkCommand = Command.make(
  "check",
  {
    file: Argument.String("file").pipe(Argument.withDescription("the configuration file")),
    json: Flag.Boolean("json").pipe(Flag.withDescription("print JSON"), Flag.withDefault(false))
  },
  () => Effect.void
).pipe(Command.withDescription("Check a configuration file"))
