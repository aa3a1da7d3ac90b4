// The bundled fake node as a process: a node like any other, whose one adapter plays scripts.

import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { runNode } from "@iop/node-sdk/runNode"
import { Cause, Data, Effect, Exit, Layer, Logger, Option, Runtime } from "effect"
import { Command, Flag } from "effect/cli"
import { mockAdapter } from "./mockAdapter.ts"
import { parseEdgeAddress } from "./parseEdgeAddress.ts"
import { readToken } from "./readToken.ts"

const VERSION = "0.1.0"

/** An argument that makes no sense. Exit code 2. */
class UsageError extends Data.TaggedError("UsageError")<{ readonly message: string }> {
  override readonly [Runtime.errorExitCode] = 2
}

const command = Command.make(
  "mock-node",
  {
    edge: Flag.String("edge").pipe(
      Flag.withMetavar("HOST:PORT"),
      Flag.withDescription("where the edge listens for nodes")
    ),
    tokenFile: Flag.File("token-file").pipe(
      Flag.withDescription("file with the node's token; default: the environment's IOP_NODE_TOKEN"),
      Flag.optional
    ),
    name: Flag.String("name").pipe(
      Flag.withDescription("a name for the log lines of this process"),
      Flag.withDefault("mock-node")
    )
  },
  Effect.fnUntraced(function* ({ edge, name, tokenFile }) {
    const address = parseEdgeAddress(edge)
    if ("problem" in address) return yield* new UsageError({ message: `--edge: ${address.problem}` })
    const token = yield* readToken(Option.getOrUndefined(tokenFile), process.env)
    return yield* runNode({
      edge: address,
      token,
      adapters: [mockAdapter()],
      agentName: "mock-node",
      agentVersion: VERSION
    }).pipe(Effect.annotateLogs({ name }))
  })
).pipe(Command.withDescription("A fake node: registers with an edge and plays scripted runs"))

const stderrLog = Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])

Command.run(command, { version: VERSION }).pipe(
  Effect.provide(Layer.mergeAll(NodeServices.layer, stderrLog)),
  NodeRuntime.runMain({
    // Stopped by a signal is how this process ends well.
    teardown: (exit, done) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
        ? done(0)
        : Runtime.defaultTeardown(exit, done)
  })
)
