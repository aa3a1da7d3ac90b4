// The command: judges an edge or a node, and ends with what came out.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer } from "effect"
import { CliConfig, CliError, Command, GlobalFlag } from "effect/cli"
import { CommandFailed } from "./cli/CommandFailed.ts"
import { conformanceCommand, VERSION } from "./cli/conformanceCommand.ts"

/** Signals that end the command; the node that it may have started goes with it. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

const fiber = Effect.runFork(
  Command.runWith(conformanceCommand, { version: VERSION })(process.argv.slice(2)).pipe(
    Effect.provide(
      Layer.merge(
        CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
        NodeServices.layer
      )
    )
  )
)

let interruptedBy: number | undefined
for (const [signal, code] of Object.entries(SIGNALS)) {
  process.on(signal, () => {
    if (interruptedBy !== undefined) process.exit(code)
    interruptedBy = code
    fiber.interruptUnsafe()
  })
}

fiber.addObserver((exit) => {
  const end = (code: number) => process.stdout.write("", () => process.exit(code))
  if (Exit.isSuccess(exit)) return end(0)
  if (Cause.hasInterruptsOnly(exit.cause)) return end(interruptedBy ?? 130)
  const error = Cause.squash(exit.cause)
  if (error instanceof CommandFailed) {
    if (error.message !== "") process.stderr.write(`conformance: ${error.message}\n`)
    return end(error.exitCode)
  }
  // effect/cli has said what is wrong already.
  if (CliError.isCliError(error)) return end(2)
  process.stderr.write(`internal error, please report it:\n${Cause.pretty(exit.cause)}\n`)
  return end(1)
})
