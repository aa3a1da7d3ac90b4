// Where a token comes from: a file, the environment, or, since people do it, the command line.
import { readFileSync } from "node:fs"
import { CommandFailed } from "./CommandFailed.ts"

/** The token, without white space around it; undefined if nobody gave one. Throws `CommandFailed`. */
export const readToken = (
  given: { readonly token: string | undefined; readonly file: string | undefined },
  environment: { readonly [name: string]: string | undefined },
  warn: (message: string) => void
): string | undefined => {
  if (given.token !== undefined) {
    warn(
      "arguments are visible to every process of the machine: better set IOP_NODE_TOKEN or use --token-file"
    )
    return given.token.trim()
  }
  if (given.file === undefined) return environment["IOP_NODE_TOKEN"]?.trim() || undefined
  let token: string
  try {
    token = readFileSync(given.file, "utf8").trim()
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown"
    throw new CommandFailed({ exitCode: 2, message: `cannot read the token file ${given.file} (${code})` })
  }
  if (token === "") throw new CommandFailed({ exitCode: 2, message: `the token file ${given.file} is empty` })
  return token
}
