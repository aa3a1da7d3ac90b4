// How a command says which running edge it talks to. A key never stands on the command line, which every process of a
// machine can read.
import { readFileSync } from "node:fs"
import { Config, Effect, Option, Redacted } from "effect"
import { Flag } from "effect/cli"
import type { EdgeClient } from "../admin/EdgeClient.ts"
import { type CommandFailed, usageError } from "./CommandFailed.ts"

/** Where an edge listens when nobody said anything else. */
export const DEFAULT_URL = "http://127.0.0.1:7611"

export const connectFlag = Flag.String("connect").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription(
    `the edge's HTTP listener (default: the environment's IOP_EDGE_URL, else ${DEFAULT_URL})`
  )
)

export const keyFileFlag = Flag.File("key-file").pipe(
  Flag.withDescription("file with an API key (default: the environment's IOP_EDGE_KEY)"),
  Flag.optional
)

/** Flags of every command that talks to a running edge. */
export const connectFlags = {
  connect: connectFlag.pipe(
    Flag.withFallbackConfig(Config.String("IOP_EDGE_URL")),
    Flag.withDefault(DEFAULT_URL)
  ),
  keyFile: keyFileFlag
}

/** Where the edge is when no flag says it. */
export const defaultUrl = (): string => process.env.IOP_EDGE_URL || DEFAULT_URL

/** The client of the edge at the URL. Nothing is sent yet. */
export const connectTo = Effect.fnUntraced(function* (
  connect: string,
  keyFile: Option.Option<string>
): Effect.fn.Return<EdgeClient, CommandFailed> {
  const url = URL.parse(connect)
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:") || url.username !== "") {
    return yield* usageError("--connect: expected an address such as http://127.0.0.1:7611")
  }
  const key = yield* readKey(Option.getOrUndefined(keyFile))
  const { makeHttpClient } = yield* Effect.promise(() => import("./client/httpClient.ts"))
  return makeHttpClient({ url, key })
})

const readKey = (
  file: string | undefined
): Effect.Effect<Redacted.Redacted<string> | undefined, CommandFailed> =>
  Effect.suspend(() => {
    let key = process.env.IOP_EDGE_KEY ?? ""
    const source = file === undefined ? "IOP_EDGE_KEY" : `--key-file: ${file}`
    if (file !== undefined) {
      try {
        key = readFileSync(file, "utf8")
      } catch (error) {
        const code = error instanceof Error && "code" in error ? String(error.code) : "unknown"
        return Effect.fail(usageError(`--key-file: cannot read ${file} (${code})`))
      }
    }
    key = key.trim()
    if (file !== undefined && key === "") return Effect.fail(usageError(`${source} is empty`))
    if (!/^[\x21-\x7e]*$/.test(key)) {
      return Effect.fail(usageError(`${source} holds characters that no API key can have`))
    }
    return Effect.succeed(key === "" ? undefined : Redacted.make(key))
  })
