// The bundled fake node as a process: a node like any other, whose one adapter plays scripts.

import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { runNode } from "@iop/node-sdk/runNode"
import { loggingLayer } from "@iop/platform-common/observability/Logging"
import { Cause, Console, Data, Effect, Exit, FiberSet, Layer, Option, Runtime } from "effect"
import { CliError, CliOutput, Command, Flag } from "effect/cli"
import { commitFault } from "./commitFault.ts"
import { FaultyLink } from "./FaultyLink.ts"
import { faultCommands } from "./faultCommands.ts"
import { mockAdapter } from "./mockAdapter.ts"
import { parseEdgeAddress } from "./parseEdgeAddress.ts"
import { NoToken, readToken } from "./readToken.ts"
import { tlsFlags, tlsOfFlags } from "./tlsFlags.ts"

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
    faults: Flag.String("faults").pipe(
      Flag.withMetavar("JSON"),
      Flag.withDescription(
        'faults to commit from the start, such as [{"fault":"gap"}]; allows runs to ask for faults'
      ),
      Flag.optional
    ),
    control: Flag.Boolean("control").pipe(
      Flag.withDescription("read faults from standard input, one per line, and drain when it ends"),
      Flag.withDefault(false)
    ),
    name: Flag.String("name").pipe(
      Flag.withDescription("a name for the log lines of this process"),
      Flag.withDefault("mock-node")
    ),
    ...tlsFlags
  },
  Effect.fnUntraced(function* ({ control, edge, faults, name, tokenFile, ...tls }) {
    const address = parseEdgeAddress(edge)
    if ("problem" in address) return yield* new UsageError({ message: `--edge: ${address.problem}` })
    const token = yield* readToken(Option.getOrUndefined(tokenFile), process.env)
    const common = {
      edge: { ...address, ...tlsOfFlags(tls) },
      token,
      agentName: "mock-node",
      agentVersion: VERSION
    }
    if (!control && Option.isNone(faults)) {
      return yield* Effect.annotateLogs(runNode({ ...common, adapters: [mockAdapter()] }), { name })
    }
    const link = new FaultyLink()
    const commit = yield* Effect.map(
      FiberSet.makeRuntime<never>(),
      (run) => (fault: unknown) => run(commitFault(link, fault))
    )
    for (const fault of yield* initialFaults(Option.getOrElse(faults, () => "[]"))) {
      yield* commitFault(link, fault)
    }
    const node = runNode({
      ...common,
      adapters: [mockAdapter({ onFault: commit })],
      wrapDialer: link.wrapDialer
    })
    // The end of the commands interrupts the node, which then drains.
    return yield* (control ? Effect.raceFirst(node, faultCommands(link, process.stdin)) : node).pipe(
      Effect.annotateLogs({ name })
    )
  }, Effect.scoped)
).pipe(Command.withDescription("A fake node: registers with an edge and plays scripted runs"))

const initialFaults = (json: string): Effect.Effect<ReadonlyArray<unknown>, UsageError> =>
  Effect.suspend(() => {
    const wrong = new UsageError({ message: "--faults: this is not a JSON array of faults" })
    try {
      const value: unknown = JSON.parse(json)
      return Array.isArray(value) ? Effect.succeed(value) : wrong
    } catch {
      return wrong
    }
  })

/** Help goes to stdout when it was asked for; a mistake is a sentence and where help is. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Console.error(`${event.errors.map((error) => error.message).join("\n")}\nSee mock-node --help`)
      : CliOutput.defaultPresenter.present(event)
}

/** Stopped by a signal is how this process ends well; 2 is a mistake in its arguments. */
const exitCodeOf = (exit: Exit.Exit<unknown, unknown>): number | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  if (Cause.hasInterruptsOnly(exit.cause)) return 0
  return CliError.isCliError(Cause.squash(exit.cause)) ? 2 : undefined
}

const logging = loggingLayer({ level: "info", format: "auto" })

Command.run(command, { version: VERSION }).pipe(
  // Here and not by runMain, whose logger writes to stdout: a sentence for a mistake, the cause for a fault of ours.
  Effect.tapError((error) =>
    error instanceof UsageError || error instanceof NoToken ? Effect.logError(error.message) : Effect.void
  ),
  Effect.tapCause((cause) => (Cause.hasDies(cause) ? Effect.logFatal("crashed", cause) : Effect.void)),
  Effect.provideService(CliOutput.Presenter, presenter),
  Effect.provide(Layer.mergeAll(NodeServices.layer, logging)),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, done) => {
      const code = exitCodeOf(exit)
      if (code === undefined) Runtime.defaultTeardown(exit, done)
      else done(code)
    }
  })
)
