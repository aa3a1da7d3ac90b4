// The configuration of a file: reads it, and the files that it names, within bounds. Whatever is no readable UTF-8 file
// is told in one sentence.

import { createReadStream } from "node:fs"
import { Effect, FileSystem, type PlatformError, Result } from "effect"
import { ConfigProblems } from "./ConfigProblem.ts"
import {
  type FileContent,
  fileFault,
  type LoadedConfig,
  openConfig,
  type ParseOptions
} from "./parseConfig.ts"
import { MAX_CONFIG_BYTES } from "./readYaml.ts"

/** Far above any token or certificate chain. */
const MAX_NAMED_FILE_BYTES = 1024 * 1024

/**
 * Reads, parses and checks a file. Fails with all of its problems; never with a secret in them.
 * `env` defaults to the environment of the process, `baseDir` to the folder of the file.
 */
export const loadConfig = Effect.fnUntraced(function* (
  path: string,
  options: Partial<Omit<ParseOptions, "file">> = {}
): Effect.fn.Return<LoadedConfig, ConfigProblems, FileSystem.FileSystem> {
  const content = yield* readTextFile(path, MAX_CONFIG_BYTES)
  if ("fault" in content) return yield* wholeFile(path, content.fault)
  const opened = openConfig(content.text, { env: process.env, ...options, file: path })
  if (Result.isFailure(opened)) return yield* Effect.fail(opened.failure)
  const contents = new Map<string, FileContent>()
  for (const file of opened.success.files) contents.set(file, yield* readTextFile(file, MAX_NAMED_FILE_BYTES))
  return yield* Effect.fromResult(opened.success.finish(contents))
})

const wholeFile = (file: string, fault: string) =>
  new ConfigProblems({
    problems: [
      {
        path: "",
        file,
        line: 0,
        column: 0,
        message: `cannot read the configuration: ${fault}`,
        severity: "error"
      }
    ]
  })

const readTextFile = Effect.fnUntraced(
  function* (path: string, limit: number) {
    const fs = yield* FileSystem.FileSystem
    const { size, type } = yield* fs.stat(path)
    if (type === "Directory") return { fault: fileFault("EISDIR") }
    if (Number(size) > limit) return { fault: "it is larger than 1 MiB" }
    // A pipe or a device has no size to go by and may have no end.
    if (type !== "File") return yield* readStream(path, limit)
    return decodeText(yield* fs.readFile(path))
  },
  Effect.catch((error: PlatformError.PlatformError) => Effect.succeed({ fault: platformFault(error) }))
)

/**
 * At most `limit` bytes of something that is no ordinary file, such as `/dev/stdin`. Not through FileSystem: that reads
 * at positions, which a pipe does not have.
 */
const readStream = (path: string, limit: number) =>
  Effect.tryPromise({
    try: async (signal): Promise<FileContent> => {
      const chunks: Array<Buffer> = []
      let total = 0
      for await (const chunk of createReadStream(path, { signal }) as AsyncIterable<Buffer>) {
        total += chunk.length
        if (total > limit) return { fault: "it is larger than 1 MiB" }
        chunks.push(chunk)
      }
      return decodeText(Buffer.concat(chunks))
    },
    catch: (error) => (error instanceof Error && "code" in error ? String(error.code) : undefined)
  }).pipe(Effect.catch((code) => Effect.succeed({ fault: fileFault(code) })))

/** UTF-8 text, or why it is none. */
const decodeText = (bytes: Uint8Array): FileContent => {
  const [first, second] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    return { fault: "it is UTF-16; save it as UTF-8" }
  }
  if (bytes.includes(0)) {
    return { fault: "it holds NUL bytes, as UTF-16 and binary files do; save it as UTF-8" }
  }
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) }
  } catch {
    return { fault: "it is not UTF-8; save it as UTF-8" }
  }
}

const platformFault = (error: PlatformError.PlatformError): string => {
  const { cause } = error.reason
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : error.reason._tag
  return fileFault(code)
}
