// What the commands that change a node have in common: its name, and its new state as the answer.
import { Effect, type Option } from "effect"
import { Argument, Flag } from "effect/cli"
import type { EdgeClient, EdgeProblem } from "../admin/EdgeClient.ts"
import type { NodeView } from "../admin/NodeView.ts"
import { type CommandFailed, failedBy } from "./CommandFailed.ts"
import { connectFlags, connectTo } from "./connectFlags.ts"
import { writeJson, writeLine } from "./output.ts"

export const nodeFlags = {
  node: Argument.String("node").pipe(Argument.withDescription("id or alias of the node")),
  json: Flag.Boolean("json").pipe(Flag.withDescription("print JSON"), Flag.withDefault(false)),
  ...connectFlags
}

/** Has the edge change the node, and says how it is now. */
export const changeNode = Effect.fnUntraced(function* (
  flags: {
    readonly json: boolean
    readonly connect: string
    readonly keyFile: Option.Option<string>
  },
  change: (client: EdgeClient) => Effect.Effect<NodeView, EdgeProblem>
): Effect.fn.Return<void, CommandFailed> {
  const client = yield* connectTo(flags.connect, flags.keyFile)
  const node = yield* Effect.mapError(change(client), failedBy)
  if (flags.json) return yield* Effect.promise(() => writeJson(node))
  const { safeLine } = yield* Effect.promise(() => import("./print/safeText.ts"))
  yield* Effect.promise(() => writeLine(safeLine(`${node.alias} is ${node.state}: ${node.reason}`)))
})
