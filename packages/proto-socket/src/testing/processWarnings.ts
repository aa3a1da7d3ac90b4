// Warnings of the process that a test expects: collected, and not printed among the results as if something were wrong.
import { Effect, type Scope } from "effect"

/** The warnings of the process from now on, until the scope closes. */
export const processWarnings: Effect.Effect<ReadonlyArray<Error>, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const warnings: Array<Error> = []
      const collect = (warning: Error) => {
        warnings.push(warning)
      }
      // Node prints warnings by a listener of its own.
      const usual = process.listeners("warning")
      process.removeAllListeners("warning").on("warning", collect)
      return { warnings, usual, collect }
    }),
    ({ usual, collect }) =>
      Effect.sync(() => {
        process.off("warning", collect)
        for (const listener of usual) process.on("warning", listener)
      })
  ),
  ({ warnings }) => warnings
)
