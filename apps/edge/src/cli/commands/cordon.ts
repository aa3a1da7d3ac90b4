// `edge cordon NODE`: keeps new runs away from a node; those that it has go on.
import { Command } from "effect/cli"
import { changeNode, nodeFlags } from "../changeNode.ts"

export const cordonCommand = Command.make("cordon", nodeFlags, (flags) =>
  changeNode(flags, (client) => client.setCordoned(flags.node, true))
).pipe(Command.withDescription("Keep new runs away from a node"))
