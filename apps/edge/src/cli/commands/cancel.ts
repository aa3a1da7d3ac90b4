// `edge cancel RUN`: cancels a run at a running edge.
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { failedBy } from "../CommandFailed.ts"
import { connectFlags, connectTo } from "../connectFlags.ts"
import { writeJson, writeLine } from "../output.ts"

export const cancelCommand = Command.make(
  "cancel",
  {
    run: Argument.String("run").pipe(Argument.withDescription("id of the run")),
    json: Flag.Boolean("json").pipe(Flag.withDescription("print JSON"), Flag.withDefault(false)),
    ...connectFlags
  },
  Effect.fnUntraced(function* (flags) {
    const client = yield* connectTo(flags.connect, flags.keyFile)
    const run = yield* Effect.mapError(client.cancel(flags.run), failedBy)
    yield* Effect.promise(() => (flags.json ? writeJson(run) : writeLine(`${run.id} is ${run.phase}`)))
  })
).pipe(Command.withDescription("Cancel a run"))
