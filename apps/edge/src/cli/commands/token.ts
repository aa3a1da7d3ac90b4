// `edge token`: makes a node's token and the line that the configuration file needs for it.
import { createHash, randomBytes } from "node:crypto"
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { writeJson, writeLine } from "../output.ts"

/** 256 bits: nobody guesses it, and SHA-256 of it can stand in the file. */
const TOKEN_BYTES = 32

export const makeToken = (): { readonly token: string; readonly token_sha256: string } => {
  const token = randomBytes(TOKEN_BYTES).toString("base64url")
  return { token, token_sha256: createHash("sha256").update(token, "utf8").digest("hex") }
}

export const tokenCommand = Command.make(
  "token",
  { json: Flag.Boolean("json").pipe(Flag.withDescription("print JSON"), Flag.withDefault(false)) },
  ({ json }) =>
    Effect.promise(() => {
      const made = makeToken()
      return json
        ? writeJson(made)
        : writeLine(
            `${made.token}\n\nfor the node:  IOP_NODE_TOKEN=${made.token}\nfor the file:  token_sha256: ${made.token_sha256}`
          )
    })
).pipe(Command.withDescription("Make a token for a node"))
