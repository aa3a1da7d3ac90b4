// `edge check FILE`: everything that is wrong with a configuration file, without starting anything.
import { type ConfigProblem, formatProblem } from "@iop/platform-common/config/ConfigProblem"
import { Effect, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandFailed, ExitCode } from "../CommandFailed.ts"
import { writeJson, writeLine } from "../output.ts"
import { counted } from "../print/inWords.ts"

export const checkCommand = Command.make(
  "check",
  {
    file: Argument.String("file").pipe(Argument.withDescription("the configuration file")),
    json: Flag.Boolean("json").pipe(Flag.withDescription("print JSON"), Flag.withDefault(false))
  },
  Effect.fnUntraced(function* ({ file, json }) {
    const { loadConfig } = yield* Effect.promise(() => import("@iop/platform-common/config/loadConfig"))
    const loaded = yield* Effect.result(loadConfig(file))
    const problems: ReadonlyArray<ConfigProblem> = Result.isSuccess(loaded)
      ? loaded.success.warnings
      : loaded.failure.problems
    const ok = Result.isSuccess(loaded)
    if (json) yield* Effect.promise(() => writeJson({ ok, problems }))
    else {
      const lines = problems.map(formatProblem)
      if (Result.isSuccess(loaded)) {
        const { nodes, routes } = loaded.success.config
        lines.push(`${file} is good: ${counted(nodes.length, "node")}, ${counted(routes.length, "route")}`)
      }
      yield* Effect.promise(() => writeLine(lines.join("\n")))
    }
    if (!ok) return yield* new CommandFailed({ message: "", exitCode: ExitCode.usage })
  })
).pipe(Command.withDescription("Check a configuration file"))
