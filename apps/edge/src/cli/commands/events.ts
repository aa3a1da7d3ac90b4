// `edge events RUN`: what a run did so far and does from now on, to its end. Leaving it changes nothing about the run.
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { connectFlags, connectTo } from "../connectFlags.ts"
import { wholeNumberFlag } from "../plainFlags.ts"

export const eventsCommand = Command.make(
  "events",
  {
    run: Argument.String("run").pipe(Argument.withDescription("id of the run")),
    after: wholeNumberFlag("after", { what: "number of an event", minimum: 0, maximum: 2 ** 31 - 1 }).pipe(
      Flag.withMetavar("SEQ"),
      Flag.withDescription("begin behind this event"),
      Flag.withDefault(0)
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("print events, one JSON object per line"),
      Flag.withDefault(false)
    ),
    ...connectFlags
  },
  Effect.fnUntraced(function* (flags) {
    const client = yield* connectTo(flags.connect, flags.keyFile)
    const { printRun } = yield* Effect.promise(() => import("../print/printRun.ts"))
    yield* printRun({ id: flags.run, events: client.events(flags.run, flags.after) }, flags.json, undefined)
  })
).pipe(Command.withDescription("Watch what a run does"))
