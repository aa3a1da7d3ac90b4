// `edge version`
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { writeJson, writeLine } from "../output.ts"
import { VERSION } from "../version.ts"

export const versionCommand = Command.make(
  "version",
  { json: Flag.Boolean("json").pipe(Flag.withDescription("print JSON"), Flag.withDefault(false)) },
  ({ json }) =>
    Effect.promise(() =>
      json ? writeJson({ version: VERSION, node: process.versions.node }) : writeLine(`edge ${VERSION}`)
    )
).pipe(Command.withDescription("Print the version"))
