// The console of a person: a prompt line with history and completion. The first Ctrl-C cancels the run and waits for
// its end, the second leaves; with nothing running it clears the line, and leaves when pressed again.
import { createInterface, type Interface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { Effect, Fiber, Queue, type Scope } from "effect"
import type { NodeView } from "../../admin/NodeView.ts"
import type { Signals } from "../Signals.ts"
import type { ConsoleSession } from "./ConsoleSession.ts"
import { completeLine } from "./completeLine.ts"
import { parseConsoleLine } from "./consoleCommands.ts"
import { type ConsoleEnd, cancelRun } from "./pipeConsole.ts"

/** What the console waits for. */
type Input =
  | { readonly type: "line"; readonly text: string }
  | { readonly type: "interrupt" }
  | { readonly type: "ended" }
  /** Ctrl-D, or the terminal has gone. */
  | { readonly type: "closed" }

/** Lines that are kept for the arrow keys. */
const HISTORY = 1000

export interface TerminalStreams {
  readonly input: Readable
  readonly output: Writable
}

export const terminalConsole = Effect.fnUntraced(function* (
  session: ConsoleSession,
  { input, output }: TerminalStreams,
  signals: Signals
): Effect.fn.Return<ConsoleEnd, never, Scope.Scope> {
  const inputs = yield* Queue.unbounded<Input>()
  const tell = (event: Input) => Queue.offerUnsafe(inputs, event)
  const lines = yield* openLines(session, { input, output }, tell)
  signals.handle((signal) => tell(signal === "SIGINT" ? { type: "interrupt" } : { type: "closed" }))

  const waiting: Array<string> = []
  let run: Fiber.Fiber<void> | undefined
  let warned = false
  const showPrompt = () => {
    lines.setPrompt(`${session.where}> `)
    lines.prompt()
  }
  const start = Effect.fnUntraced(function* (text: string) {
    yield* Effect.ignore(session.chooseFirst)
    const ended = Effect.sync(() => tell({ type: "ended" }))
    run = yield* Effect.forkScoped(Effect.ensuring(session.prompt(text), ended), { startImmediately: true })
  })

  yield* Effect.ignore(session.chooseFirst)
  showPrompt()
  while (true) {
    const event = yield* Queue.take(inputs)
    switch (event.type) {
      case "closed": {
        if (run !== undefined) yield* Fiber.interrupt(run)
        else output.write("\n")
        return "finished"
      }
      case "interrupt": {
        if (warned) return "interrupted"
        if (run !== undefined) {
          // What was typed ahead was meant to follow an answer that nobody wants any more.
          waiting.length = 0
          warned = true
          cancelRun(session, run)
        } else if (lines.line === "") {
          warned = true
          output.write("\n(once more, or /quit, leaves)\n")
          showPrompt()
        } else {
          output.write("\n")
          clearLine(lines)
          showPrompt()
        }
        break
      }
      case "ended": {
        run = undefined
        warned = false
        const next = waiting.shift()
        if (next === undefined) showPrompt()
        else yield* start(next)
        break
      }
      case "line": {
        warned = false
        const line = parseConsoleLine(event.text)
        if (line.type === "quit") {
          if (run !== undefined) yield* Fiber.interrupt(run)
          return "finished"
        }
        if (line.type === "prompt") {
          if (run === undefined) yield* start(line.text)
          else waiting.push(line.text)
          break
        }
        if (line.type !== "nothing") yield* session.command(line)
        if (run === undefined) showPrompt()
      }
    }
  }
})

const openLines = (
  session: ConsoleSession,
  { input, output }: TerminalStreams,
  tell: (event: Input) => void
): Effect.Effect<Interface, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      let nodes: ReadonlyArray<NodeView> = []
      const lines = createInterface({
        input,
        output,
        terminal: true,
        historySize: HISTORY,
        removeHistoryDuplicates: true,
        completer: (line: string, done: (error: null, result: [Array<string>, string]) => void) => {
          // The nodes of now, or those of before when the edge does not answer.
          Effect.runFork(
            Effect.match(session.client.nodes, {
              onSuccess: (fresh) => {
                nodes = fresh
                done(null, completeLine(line, nodes))
              },
              onFailure: () => done(null, completeLine(line, nodes))
            })
          )
        }
      })
      lines.on("line", (text) => tell({ type: "line", text }))
      lines.on("SIGINT", () => tell({ type: "interrupt" }))
      lines.on("close", () => tell({ type: "closed" }))
      return lines
    }),
    (lines) => Effect.sync(() => lines.close())
  )

/** Forgets what was typed: readline's own Ctrl-U. */
const clearLine = (lines: Interface): void => {
  lines.write(null, { ctrl: true, name: "e" })
  lines.write(null, { ctrl: true, name: "u" })
}
