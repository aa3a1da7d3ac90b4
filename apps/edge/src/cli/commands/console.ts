// `edge console`: sends runs and prints their events as they come, to the edge of its own process or to another.
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { EdgeClient } from "../../admin/EdgeClient.ts"
import { CommandFailed, ExitCode, failedBy, usageError } from "../CommandFailed.ts"
import { connectFlag, connectTo, defaultUrl, keyFileFlag } from "../connectFlags.ts"
import { edgeFlags } from "../edgeFlags.ts"
import { write } from "../output.ts"
import { ProcessSignals } from "../Signals.ts"

export const consoleCommand = Command.make(
  "console",
  {
    adapter: Argument.String("adapter").pipe(Argument.withDescription("where prompts go"), Argument.optional),
    target: Argument.String("target").pipe(
      Argument.withDescription("what the adapter executes"),
      Argument.optional
    ),
    ...edgeFlags,
    connect: Flag.optional(connectFlag),
    keyFile: keyFileFlag,
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("print events, one JSON object per line"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* (flags) {
    if (Option.isSome(flags.adapter) && Option.isNone(flags.target)) {
      return yield* usageError("say the target too: edge console … ADAPTER TARGET")
    }
    const ways = [Option.isSome(flags.connect), Option.isSome(flags.config), flags.local]
    if (ways.filter((way) => way).length > 1) {
      return yield* usageError("say one edge: --local, --config FILE or --connect URL")
    }
    const where =
      Option.isSome(flags.adapter) && Option.isSome(flags.target)
        ? { adapter: flags.adapter.value, target: flags.target.value }
        : undefined
    yield* Effect.scoped(
      Effect.gen(function* () {
        if (!flags.local && Option.isNone(flags.config)) {
          const client = yield* connectTo(Option.getOrElse(flags.connect, defaultUrl), flags.keyFile)
          return yield* converse(client, flags.json, where)
        }
        const { startEdge } = yield* Effect.promise(() => import("../startEdge.ts"))
        const { app } = yield* startEdge(flags, true)
        yield* Effect.ensuring(converse(app.client("console"), flags.json, where), app.drain)
      })
    )
  })
).pipe(Command.withDescription("Send runs and watch them, line by line"))

const converse = Effect.fnUntraced(function* (
  client: EdgeClient,
  json: boolean,
  where: { readonly adapter: string; readonly target: string } | undefined
) {
  const signals = yield* ProcessSignals
  const { ConsoleSession } = yield* Effect.promise(() => import("../console/ConsoleSession.ts"))
  const { stdoutOptions } = yield* Effect.promise(() => import("../print/RunPrinter.ts"))
  // An edge that can't be reached is told before anything is asked.
  yield* Effect.mapError(client.nodes, failedBy)
  const terminal = process.stdin.isTTY === true && process.stdout.isTTY === true
  const note = terminal
    ? write
    : (text: string) =>
        new Promise<void>((resolve) => {
          process.stderr.write(text, () => resolve())
        })
  const session = new ConsoleSession(client, { printer: stdoutOptions(), json, out: write, note }, where)
  if (terminal) {
    const { terminalConsole } = yield* Effect.promise(() => import("../console/terminalConsole.ts"))
    const end = yield* terminalConsole(session, { input: process.stdin, output: process.stdout }, signals)
    if (end === "interrupted")
      return yield* new CommandFailed({ message: "", exitCode: ExitCode.interrupted })
    return
  }
  const { pipeConsole } = yield* Effect.promise(() => import("../console/pipeConsole.ts"))
  const end = yield* pipeConsole(session, process.stdin, signals)
  if (end === "interrupted") return yield* new CommandFailed({ message: "", exitCode: ExitCode.interrupted })
  if (session.failed > 0) return yield* new CommandFailed({ message: "", exitCode: ExitCode.runFailed })
})
