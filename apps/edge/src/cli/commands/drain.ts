// `edge drain NODE`: cordons a node and asks it to finish its runs.
import { Command } from "effect/cli"
import { changeNode, nodeFlags } from "../changeNode.ts"

export const drainCommand = Command.make("drain", nodeFlags, (flags) =>
  changeNode(flags, (client) => client.drainNode(flags.node))
).pipe(Command.withDescription("Keep new runs away from a node and ask it to finish those it has"))
