// `edge runs [ID]`: the runs of a running edge, newest first, or everything about one.
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { failedBy } from "../CommandFailed.ts"
import { connectFlags, connectTo } from "../connectFlags.ts"
import { writeJson, writeLine } from "../output.ts"
import { wholeNumberFlag } from "../plainFlags.ts"

export const runsCommand = Command.make(
  "runs",
  {
    id: Argument.String("id").pipe(Argument.withDescription("one run"), Argument.optional),
    active: Flag.Boolean("active").pipe(
      Flag.withDescription("only runs that have not ended"),
      Flag.withDefault(false)
    ),
    limit: wholeNumberFlag("limit", { what: "number of runs", minimum: 1, maximum: 1_000 }).pipe(
      Flag.withDescription("how many at most"),
      Flag.withDefault(20)
    ),
    json: Flag.Boolean("json").pipe(Flag.withDescription("print JSON"), Flag.withDefault(false)),
    ...connectFlags
  },
  Effect.fnUntraced(function* ({ id, active, limit, json, connect, keyFile }) {
    const client = yield* connectTo(connect, keyFile)
    const { runDetails, runsTable } = yield* Effect.promise(() => import("../print/printRuns.ts"))
    if (Option.isSome(id)) {
      const run = yield* Effect.mapError(client.run(id.value), failedBy)
      return yield* Effect.promise(() => (json ? writeJson(run) : writeLine(runDetails(run))))
    }
    const runs = yield* Effect.mapError(client.runs(active ? { active, limit } : { limit }), failedBy)
    yield* Effect.promise(() => (json ? writeJson(runs) : writeLine(runsTable(runs))))
  })
).pipe(Command.withDescription("List the runs of a running edge"))
