// The commands of `edge`.
import { Command } from "effect/cli"
import { cancelCommand } from "./commands/cancel.ts"
import { checkCommand } from "./commands/check.ts"
import { consoleCommand } from "./commands/console.ts"
import { cordonCommand } from "./commands/cordon.ts"
import { drainCommand } from "./commands/drain.ts"
import { eventsCommand } from "./commands/events.ts"
import { explainCommand } from "./commands/explain.ts"
import { nodesCommand } from "./commands/nodes.ts"
import { runCommand } from "./commands/run.ts"
import { runsCommand } from "./commands/runs.ts"
import { serveCommand } from "./commands/serve.ts"
import { tokenCommand } from "./commands/token.ts"
import { uncordonCommand } from "./commands/uncordon.ts"
import { versionCommand } from "./commands/version.ts"

export const edgeCommand = Command.make("edge").pipe(
  Command.withDescription("Binds the boxes that run models and agents into one execution group."),
  Command.withSubcommands([
    serveCommand,
    consoleCommand,
    runCommand,
    explainCommand,
    runsCommand,
    eventsCommand,
    cancelCommand,
    nodesCommand,
    cordonCommand,
    uncordonCommand,
    drainCommand,
    checkCommand,
    tokenCommand,
    versionCommand
  ])
)
