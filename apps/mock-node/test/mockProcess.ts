// The fake node as a real process, for tests: its log lines, its standard input, its end.

import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Deferred, Effect, type Scope } from "effect"

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url))

/** A process that runs. */
export interface MockProcess {
  /** Everything that it wrote to stderr so far, by line. */
  readonly lines: ReadonlyArray<string>
  /** The first line that fits, among those written so far or to come. Dies if the process ends without it. */
  readonly line: (fits: RegExp) => Effect.Effect<string>
  /** Writes a line to its stdin. */
  readonly command: (fault: unknown) => void
  readonly endInput: () => void
  readonly kill: (signal: NodeJS.Signals) => void
  /** Exit code or the signal that ended it. */
  readonly exited: Effect.Effect<number | NodeJS.Signals>
}

/** Starts the fake node; it is killed with the scope. */
export const mockProcess = (
  args: ReadonlyArray<string>,
  environment: { readonly [name: string]: string }
): Effect.Effect<MockProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [MAIN, ...args], {
        stdio: ["pipe", "ignore", "pipe"],
        env: { PATH: process.env.PATH, ...environment }
      })
      const lines: Array<string> = []
      const waiters = new Set<{ readonly fits: RegExp; readonly found: (line: string) => void }>()
      const exited = Deferred.makeUnsafe<number | NodeJS.Signals>()
      const reader = createInterface({ input: child.stderr })
      reader.on("line", (line) => {
        lines.push(line)
        for (const waiter of [...waiters]) if (waiter.fits.test(line)) waiter.found(line)
      })
      child.on("close", (code, signal) => {
        Deferred.doneUnsafe(exited, Effect.succeed(code ?? signal ?? "SIGKILL"))
      })
      return {
        lines,
        child,
        line: (fits: RegExp) =>
          Effect.raceFirst(
            Effect.callback<string>((resume) => {
              const known = lines.find((line) => fits.test(line))
              if (known !== undefined) return resume(Effect.succeed(known))
              const waiter = { fits, found: (line: string) => resume(Effect.succeed(line)) }
              waiters.add(waiter)
              return Effect.sync(() => waiters.delete(waiter))
            }),
            Effect.flatMap(Deferred.await(exited), (how) =>
              Effect.die(new Error(`the process ended (${how}) without ${fits}:\n${lines.join("\n")}`))
            )
          ),
        command: (fault: unknown) => child.stdin.write(`${JSON.stringify(fault)}\n`),
        endInput: () => child.stdin.end(),
        kill: (signal: NodeJS.Signals) => child.kill(signal),
        exited: Deferred.await(exited)
      }
    }),
    ({ child, exited }) =>
      Effect.suspend(() => {
        child.kill("SIGKILL")
        return Effect.asVoid(exited)
      })
  )
