// `edge nodes [NAME]`: the nodes of a running edge.
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { failedBy } from "../CommandFailed.ts"
import { connectFlags, connectTo } from "../connectFlags.ts"
import { writeJson, writeLine } from "../output.ts"

export const nodesCommand = Command.make(
  "nodes",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("id or alias of one node"),
      Argument.optional
    ),
    json: Flag.Boolean("json").pipe(Flag.withDescription("print JSON"), Flag.withDefault(false)),
    ...connectFlags
  },
  Effect.fnUntraced(function* ({ name, json, connect, keyFile }) {
    const client = yield* connectTo(connect, keyFile)
    const nodes = yield* Effect.mapError(
      Option.isNone(name) ? client.nodes : Effect.map(client.node(name.value), (node) => [node]),
      failedBy
    )
    if (json) return yield* Effect.promise(() => writeJson(Option.isNone(name) ? nodes : nodes[0]))
    const { nodesTable } = yield* Effect.promise(() => import("../print/printNodes.ts"))
    yield* Effect.promise(() => writeLine(nodesTable(nodes)))
  })
).pipe(Command.withDescription("List the nodes of a running edge"))
