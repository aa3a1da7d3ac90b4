// Where the fake node's token comes from. Never from the command line, which every process of a machine can read.

import { readFileSync } from "node:fs"
import { Data, Effect, Redacted, Runtime } from "effect"

/** There is no token, or it can't be read. Exit code 2. */
export class NoToken extends Data.TaggedError("NoToken")<{ readonly message: string }> {
  override readonly [Runtime.errorExitCode] = 2
}

/** The token of the file, or of the environment's `IOP_NODE_TOKEN`. Whitespace around it does not count. */
export const readToken = (
  file: string | undefined,
  environment: { readonly [name: string]: string | undefined }
): Effect.Effect<Redacted.Redacted<string>, NoToken> =>
  Effect.suspend(() => {
    let token: string
    if (file === undefined) {
      token = environment.IOP_NODE_TOKEN ?? ""
    } else {
      try {
        token = readFileSync(file, "utf8")
      } catch (thrown) {
        const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown"
        return new NoToken({ message: `cannot read the token file ${file} (${code})` })
      }
    }
    token = token.trim()
    return token === ""
      ? new NoToken({
          message:
            file === undefined
              ? "no token: set IOP_NODE_TOKEN, or name a file with --token-file"
              : `the token file ${file} is empty`
        })
      : Effect.succeed(Redacted.make(token))
  })
