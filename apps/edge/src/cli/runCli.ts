// Runs a command line to its exit code: errors as one sentence on stderr, never a stack for a user's mistake.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { CommandFailed, ExitCode } from "./CommandFailed.ts"
import { edgeCommand } from "./edgeCommand.ts"
import { stdoutClosed, watchStdout, whenStdoutCloses } from "./output.ts"
import { safeText } from "./print/safeText.ts"
import { ProcessSignals, Signals } from "./Signals.ts"
import { VERSION } from "./version.ts"

/** Help goes to stdout when it was asked for; a mistake is a sentence and where help is. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Console.error(
          `${event.errors.map((error) => error.message).join("\n")}\nSee ${event.commandPath.join(" ")} --help`
        )
      : CliOutput.defaultPresenter.present(event)
}

/** The wizard and the log level are no part of this command line. */
const cliConfig = CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })

/** How a command's end reads: its exit code and what is said on stderr. */
export const endOf = (
  exit: Exit.Exit<void, unknown>
): { readonly code: number; readonly message: string } => {
  if (Exit.isSuccess(exit)) return { code: ExitCode.good, message: "" }
  if (Cause.hasInterruptsOnly(exit.cause)) return { code: ExitCode.interrupted, message: "" }
  const error = Cause.squash(exit.cause)
  if (error instanceof CommandFailed) {
    const sentence = error.message === "" || error.bare === true ? error.message : `edge: ${error.message}`
    // A node's or an edge's words may be in it: they must not steer the terminal.
    return { code: error.exitCode, message: safeText(sentence) }
  }
  // effect/cli has said what is wrong already.
  if (CliError.isCliError(error)) return { code: ExitCode.usage, message: "" }
  return {
    code: ExitCode.runFailed,
    message: `internal error, please report it:\n${Cause.pretty(exit.cause)}`
  }
}

/** Runs the arguments and ends the process with the command's exit code. */
export const runCli = (args: ReadonlyArray<string>): void => {
  const end = (code: number, message: string) => {
    if (message !== "") process.stderr.write(`${message}\n`)
    // What was written to a pipe is flushed before the process goes.
    if (stdoutClosed()) process.exit(code === ExitCode.interrupted ? ExitCode.good : code)
    process.stdout.write("", () => process.exit(code))
  }
  const signals = new Signals(() => {
    // A command that does not end for an interruption ends for the next one.
    signals.handle(() => process.exit(ExitCode.interrupted))
    fiber.interruptUnsafe()
  })
  whenStdoutCloses(() => fiber.interruptUnsafe())
  watchStdout()
  for (const fault of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(fault, (error: unknown) => {
      process.stderr.write(
        `internal error, please report it:\n${error instanceof Error ? error.stack : String(error)}\n`
      )
      process.exit(ExitCode.runFailed)
    })
  }
  const fiber = Effect.runFork(
    Command.runWith(edgeCommand, { version: VERSION })(args).pipe(
      Effect.provideService(ProcessSignals, signals),
      Effect.provideService(CliOutput.Presenter, presenter),
      Effect.provide(Layer.merge(cliConfig, NodeServices.layer))
    )
  )
  signals.listen()
  fiber.addObserver((exit) => {
    const { code, message } = endOf(exit)
    end(code, message)
  })
}
