// The console of a pipe: prompts line by line, one after the other, until the input ends. The first interruption
// cancels the run and reads no further, the second ends the process.
import type { Readable } from "node:stream"
import { Effect, Fiber } from "effect"
import type { Signals } from "../Signals.ts"
import type { ConsoleSession } from "./ConsoleSession.ts"
import { parseConsoleLine } from "./consoleCommands.ts"
import { readLines } from "./readLines.ts"

/** How a console ended. */
export type ConsoleEnd = "finished" | "interrupted"

export const pipeConsole = Effect.fnUntraced(function* (
  session: ConsoleSession,
  input: Readable,
  signals: Signals
): Effect.fn.Return<ConsoleEnd> {
  const lines = readLines(input)
  let interrupted = false
  let cancel = () => {}
  signals.handle(() => {
    if (interrupted) process.exit(130)
    interrupted = true
    input.destroy()
    cancel()
  })
  while (!interrupted) {
    const next = yield* Effect.promise(() => lines.next())
    if (next.done === true || interrupted) break
    const line = parseConsoleLine(next.value)
    if (line.type === "quit") break
    if (line.type === "nothing") continue
    if (line.type !== "prompt") {
      yield* session.command(line)
      continue
    }
    yield* Effect.ignore(session.chooseFirst)
    const run = yield* Effect.forkChild(session.prompt(line.text), { startImmediately: true })
    cancel = () => cancelRun(session, run)
    yield* Fiber.await(run)
    cancel = () => {}
  }
  input.destroy()
  return interrupted ? "interrupted" : "finished"
})

/** Asks the edge to cancel the run and lets its last events come; a run without an id yet is simply left. */
export const cancelRun = (session: ConsoleSession, run: Fiber.Fiber<unknown, unknown>): void => {
  if (session.runId === undefined) run.interruptUnsafe()
  else Effect.runFork(session.command({ type: "cancel", run: undefined }))
}
