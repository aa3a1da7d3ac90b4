// Logs far more than a pipe holds, then answers on stdout: shows whether a process outlives a log that is gone.

import { once } from "node:events"
import { Effect } from "effect"
import { loggingLayer } from "../Logging.ts"

await once(process.stdin, "data")
const flood = Effect.forEach(Array.from({ length: 5000 }), () => Effect.logInfo("x".repeat(1000)), {
  discard: true
})
await Effect.runPromise(Effect.provide(flood, loggingLayer({ level: "info", format: "auto" })))
// One turn for the stream to notice that its reader is gone.
await new Promise((resolve) => setImmediate(resolve))
await Effect.runPromise(
  Effect.provide(Effect.logInfo("after"), loggingLayer({ level: "info", format: "auto" }))
)
process.stdout.write("still here\n")
await once(process.stdin.resume(), "end")
process.exit(0)
