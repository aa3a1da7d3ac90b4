// A run's events on stdout as they come, for a person or as JSON lines, and its end as the end of the command.
import { Effect, Stream } from "effect"
import type { SubmittedRun } from "../../admin/EdgeClient.ts"
import type { RunEventView } from "../../admin/RunEventView.ts"
import { CommandFailed, ExitCode, failedBy } from "../CommandFailed.ts"
import { write } from "../output.ts"
import { RunPrinter, stdoutOptions } from "./RunPrinter.ts"

/**
 * Prints to the run's last event. `startedAt`: when the run was submitted, by performance.now(), if it was here. Fails
 * with exit code 1 when the run did not end well.
 */
export const printRun = Effect.fnUntraced(function* (
  run: SubmittedRun,
  json: boolean,
  startedAt: number | undefined
): Effect.fn.Return<void, CommandFailed> {
  const options = stdoutOptions()
  const printer = new RunPrinter(options, startedAt)
  let last: RunEventView | undefined
  yield* Stream.runForEach(run.events, (event) => {
    last = event
    const text = json ? `${JSON.stringify({ run: run.id, ...event })}\n` : printer.print(event)
    return Effect.promise(() => write(text))
  }).pipe(
    Effect.mapError(failedBy),
    // What is said next begins a line of its own.
    Effect.onError(() =>
      Effect.sync(() => {
        // Not waited for: an interrupted command ends although nobody reads.
        if (!json) void write(printer.finish())
      })
    )
  )
  const failure = badEnd(run.id, last, !json && options.terminal && process.stderr.isTTY === true)
  if (failure !== undefined) return yield* failure
})

/** How a command ends whose run ended with that event. `said`: the reader of stderr has seen the printed event. */
export const badEnd = (
  id: string,
  last: RunEventView | undefined,
  said: boolean
): CommandFailed | undefined => {
  if (last?.type !== "failed" && last?.type !== "cancelled") return undefined
  const sentence =
    last.type === "failed"
      ? `run ${id} failed: ${last.code}: ${last.message}`
      : `run ${id} was cancelled: ${last.reason}`
  return new CommandFailed({ message: said ? "" : sentence, exitCode: ExitCode.runFailed })
}
