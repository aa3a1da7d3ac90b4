import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, PlatformError, Redacted } from "effect"
import { loadConfig } from "./loadConfig.ts"

const folder = mkdtempSync(join(tmpdir(), "edge-config-"))
afterAll(() => rmSync(folder, { recursive: true }))

const file = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const good =
  "listen: { nodes: { host: 127.0.0.1 } }\nnodes: [{ id: a, token: t0ken, adapters: [{ name: m, type: mock }] }]\n"

const load = (path: string, env: Record<string, string> = {}) =>
  loadConfig(path, { env }).pipe(Effect.provide(NodeFileSystem.layer))

/** The one sentence that a file is refused with. */
const refusal = (path: string) => Effect.map(Effect.flip(load(path)), ({ message }) => message)

describe("loadConfig", () => {
  it.effect("reads a file and the files that it names, relative to it", () =>
    Effect.gen(function* () {
      mkdirSync(join(folder, "secrets"), { recursive: true })
      file("secrets/a", "t0ken-of-16-chars\n")
      const path = file("named.yaml", good.replace("token: t0ken", "token_file: secrets/a"))
      const { config, warnings } = yield* load(path)
      const token = config.nodes[0]?.token
      assert.strictEqual(token && Redacted.value(token), "t0ken-of-16-chars")
      assert.deepStrictEqual(warnings, [])
    })
  )

  it.effect("CF11 BOM and CRLF are fine", () =>
    Effect.gen(function* () {
      const { config } = yield* load(file("crlf.yaml", `\ufeff${good.replaceAll("\n", "\r\n")}`))
      assert.strictEqual(config.nodes[0]?.id, "a")
      assert.strictEqual(config.nodes[0]?.token && Redacted.value(config.nodes[0].token), "t0ken")
    })
  )

  it.effect("CF11 what is no readable file is told in one sentence", () =>
    Effect.gen(function* () {
      const missing = join(folder, "missing.yaml")
      assert.strictEqual(yield* refusal(missing), `${missing}  cannot read the configuration: no such file`)
      assert.strictEqual(
        yield* refusal(folder),
        `${folder}  cannot read the configuration: it is a directory`
      )
      const below = join(file("plain.yaml", good), "x")
      assert.match(yield* refusal(below), /cannot read the configuration: /)
      for (const name of ["empty", "blank", "comment"]) {
        const path = file(`${name}.yaml`, { empty: "", blank: " \n\n", comment: "# nodes: []\n" }[name] ?? "")
        assert.strictEqual(yield* refusal(path), `${path}:1:1  the file is empty; it needs at least nodes`)
      }
      const le = file("utf16le.yaml", Buffer.from(`\ufeff${good}`, "utf16le"))
      assert.strictEqual(
        yield* refusal(le),
        `${le}  cannot read the configuration: it is UTF-16; save it as UTF-8`
      )
      const be = file("utf16be.yaml", Buffer.from(`\ufeff${good}`, "utf16le").swap16())
      assert.strictEqual(
        yield* refusal(be),
        `${be}  cannot read the configuration: it is UTF-16; save it as UTF-8`
      )
      const bare = file("bare16.yaml", Buffer.from(good, "utf16le"))
      assert.match(
        yield* refusal(bare),
        /it holds NUL bytes, as UTF-16 and binary files do; save it as UTF-8$/
      )
      const latin = file("latin1.yaml", Buffer.from("# Grüße\n", "latin1"))
      assert.match(yield* refusal(latin), /it is not UTF-8; save it as UTF-8$/)
      const huge = file("huge.yaml", "#".repeat(1024 * 1024 + 1))
      assert.match(yield* refusal(huge), /it is larger than 1 MiB$/)
    })
  )

  it.effect("CF11 a file without permission", () =>
    Effect.gen(function* () {
      const path = file("locked.yaml", good)
      chmodSync(path, 0)
      // Root reads it nevertheless; then the answer of the system is given here.
      const denied = FileSystem.layerNoop({
        stat: () =>
          Effect.fail(
            PlatformError.systemError({
              _tag: "PermissionDenied",
              module: "FileSystem",
              method: "stat",
              pathOrDescriptor: path
            })
          )
      })
      const error = yield* Effect.flip(loadConfig(path, { env: {} }).pipe(Effect.provide(denied)))
      assert.strictEqual(error.message, `${path}  cannot read the configuration: no permission`)
    })
  )

  it.live("CF8 an endless or a huge device is not read to its end", () =>
    Effect.gen(function* () {
      assert.match(yield* refusal("/dev/zero"), /it is larger than 1 MiB$/)
      const pipe = join(folder, "pipe")
      execFileSync("mkfifo", [pipe])
      const writer = Effect.promise(async () => {
        const { writeFile } = await import("node:fs/promises")
        await writeFile(pipe, good)
      })
      const [{ config }] = yield* Effect.all([load(pipe), writer], { concurrency: 2 })
      assert.strictEqual(config.nodes[0]?.id, "a")
    })
  )

  it.effect("CF1 a token file that is missing, empty or a directory is named with its node's place", () =>
    Effect.gen(function* () {
      file("blank-token", " \n")
      const path = file(
        "tokens.yaml",
        `nodes:\n  - { id: a, token_file: gone }\n  - { id: b, token_file: blank-token }\n  - { id: c, token_file: . }\n`
      )
      const { problems } = yield* Effect.flip(load(path))
      assert.deepStrictEqual(
        problems
          .filter(({ severity }) => severity === "error")
          .map(({ line, message, path }) => [line, path, message]),
        [
          [2, "nodes[0].token_file", `cannot read "${join(folder, "gone")}": no such file`],
          [3, "nodes[1].token", 'the token of node "b" is empty (from its token_file)'],
          [4, "nodes[2].token_file", `cannot read "${folder}": it is a directory`]
        ]
      )
    })
  )
})
