// `edge serve`: the edge itself. The first signal lets it finish what runs, the second ends it at once.
import { Effect } from "effect"
import { Command } from "effect/cli"
import { ExitCode } from "../CommandFailed.ts"
import { edgeFlags } from "../edgeFlags.ts"
import { whenStdoutCloses, writeLine } from "../output.ts"
import { ProcessSignals, type Signal } from "../Signals.ts"

export const serveCommand = Command.make(
  "serve",
  edgeFlags,
  Effect.fnUntraced(function* (flags) {
    const signals = yield* ProcessSignals
    // Whoever read the first screen may leave: the edge goes on serving.
    whenStdoutCloses(() => {})
    const { startEdge } = yield* Effect.promise(() => import("../startEdge.ts"))
    const { startupScreen } = yield* Effect.promise(() => import("../print/startupScreen.ts"))
    yield* Effect.gen(function* () {
      const edge = yield* startEdge(flags, false)
      const nodes = yield* edge.app.client("edge").nodes
      yield* Effect.promise(() => writeLine(startupScreen(edge, nodes)))
      const signal = yield* Effect.callback<Signal>((resume) => {
        let stopping = false
        signals.handle((signal) => {
          if (stopping) process.exit(ExitCode.interrupted)
          stopping = true
          resume(Effect.succeed(signal))
        })
      })
      yield* edge.info("finishing what runs; a second signal ends it at once", { signal })
      yield* edge.app.drain
    }).pipe(Effect.scoped)
  })
).pipe(Command.withDescription("Start an edge"))
