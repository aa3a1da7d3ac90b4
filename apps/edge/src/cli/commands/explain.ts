// `edge explain ADAPTER TARGET`: which node would get a run and why not the others. Runs nothing.
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { failedBy } from "../CommandFailed.ts"
import { connectFlags, connectTo } from "../connectFlags.ts"
import { writeJson, writeLine } from "../output.ts"
import { needArguments, needFlags, needOf } from "../runFlags.ts"

export const explainCommand = Command.make(
  "explain",
  {
    ...needArguments,
    ...needFlags,
    json: Flag.Boolean("json").pipe(Flag.withDescription("print JSON"), Flag.withDefault(false)),
    ...connectFlags
  },
  Effect.fnUntraced(function* (flags) {
    const client = yield* connectTo(flags.connect, flags.keyFile)
    const explanation = yield* Effect.mapError(client.explain(needOf(flags)), failedBy)
    if (flags.json) return yield* Effect.promise(() => writeJson(explanation))
    const { explanationText } = yield* Effect.promise(() => import("../print/printRuns.ts"))
    yield* Effect.promise(() => writeLine(explanationText(explanation)))
  })
).pipe(Command.withDescription("Say which node would get a run, and why not the others"))
