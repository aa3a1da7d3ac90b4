// `edge uncordon NODE`: lets new runs come to a node again.
import { Command } from "effect/cli"
import { changeNode, nodeFlags } from "../changeNode.ts"

export const uncordonCommand = Command.make("uncordon", nodeFlags, (flags) =>
  changeNode(flags, (client) => client.setCordoned(flags.node, false))
).pipe(Command.withDescription("Let new runs come to a node again"))
