import { Effect } from "effect"
import { Command } from "effect/cli"
export const consoleCommand = Command.make("console", {}, () => Effect.void)
