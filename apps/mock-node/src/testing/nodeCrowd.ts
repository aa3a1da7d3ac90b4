// Many nodes in one process, for tests of what an edge does with hundreds of them: `nodeCrowd.ts HOST:PORT FROM COUNT
// TOKEN`, where `#` in TOKEN stands for a node's number. Each is a whole node of the SDK with a link of its own.

import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { runNode } from "@iop/node-sdk/runNode"
import { loggingLayer } from "@iop/platform-common/observability/Logging"
import { Cause, Effect, Exit, Redacted, Runtime } from "effect"
import { mockAdapter } from "../mockAdapter.ts"
import { parseEdgeAddress } from "../parseEdgeAddress.ts"

const [address = "", from = "", count = "", token = ""] = process.argv.slice(2)
const edge = parseEdgeAddress(address)
if ("problem" in edge) throw new Error(edge.problem)

const numbers = Array.from({ length: Number(count) }, (_, index) => Number(from) + index)

Effect.forEach(
  numbers,
  (number) =>
    runNode({
      edge,
      token: Redacted.make(token.replace("#", String(number))),
      adapters: [mockAdapter()],
      agentName: "node-crowd",
      agentVersion: "0.1.0"
    }).pipe(Effect.annotateLogs({ number })),
  { concurrency: "unbounded", discard: true }
).pipe(
  Effect.provide(loggingLayer({ level: "error", format: "json" })),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, done) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
        ? done(0)
        : Runtime.defaultTeardown(exit, done)
  })
)
