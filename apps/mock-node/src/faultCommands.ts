// Commands on the standard input of the fake node: one fault per line, as JSON. The end of the input is the end of
// who gave the commands, so the node drains then.

import { createInterface } from "node:readline"
import { type Cause, Effect, Queue } from "effect"
import { commitFault } from "./commitFault.ts"
import type { FaultyLink } from "./FaultyLink.ts"

/** Commits the faults that come in, until the input ends. */
export const faultCommands = (link: FaultyLink, input: NodeJS.ReadableStream): Effect.Effect<void> =>
  Effect.scoped(
    Effect.gen(function* () {
      const lines = yield* Queue.unbounded<string, Cause.Done>()
      const reader = createInterface({ input })
      yield* Effect.addFinalizer(() => Effect.sync(() => reader.close()))
      reader.on("line", (line) => Queue.offerUnsafe(lines, line))
      reader.on("close", () => Queue.endUnsafe(lines))
      yield* Effect.forever(
        Effect.flatMap(Queue.take(lines), (line) =>
          line.trim() === "" ? Effect.void : commitJson(link, line)
        )
      ).pipe(Effect.catch(() => Effect.void))
    })
  )

const commitJson = (link: FaultyLink, line: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    let value: unknown
    try {
      value = JSON.parse(line)
    } catch {
      return Effect.logError("a command is not JSON", { command: line.slice(0, 200) })
    }
    return commitFault(link, value)
  })
