// The direction of the imports is what keeps the edge's parts apart: the run machinery can be tested without a socket,
// and another protocol or surface can be added without touching it.
import { assert, describe, it } from "@effect/vitest"
import { type SourceFile, sourceFiles } from "./sourceFiles.ts"

const edge = sourceFiles("apps/edge/src")

/** The part of the edge that a file belongs to: its folder, or `main` for a file beside the folders. */
const partOf = (path: string): string => {
  const [first = "", ...rest] = path.slice("apps/edge/src/".length).split("/")
  return rest.length === 0 ? "main" : first
}

/** What each part may import of the others, over and above itself. */
const mayImport: Readonly<Record<string, ReadonlyArray<string>>> = {
  node: [],
  run: ["node"],
  transport: ["run", "node"],
  http: ["run", "node"],
  openai: ["http", "run", "node"],
  admin: ["http", "run", "node"],
  metrics: ["openai", "admin", "http", "transport", "run", "node"],
  bootstrap: ["metrics", "openai", "admin", "http", "transport", "run", "node"],
  cli: ["bootstrap", "metrics", "openai", "admin", "http", "transport", "run", "node"],
  main: ["cli", "bootstrap"]
}

const sockets = [/^node:(net|tls|dgram)$/, /^effect\/(socket|net)\b/, /^@iop\/proto-socket\//]
const http = [/^node:https?$/, /^node:http2$/, /^effect\/http/, /NodeHttp/]

/** Modules from outside that a part must not know. */
const mustNotKnow: Readonly<Record<string, ReadonlyArray<RegExp>>> = {
  node: [...sockets, ...http],
  run: [...sockets, ...http],
  transport: http,
  openai: [/^@iop\/proto-socket\//, /(frame|register|run|status)_pb$/, /FrameWire$/],
  admin: [/^@iop\/proto-socket\//, /(frame|register|run|status)_pb$/, /FrameWire$/]
}

/** Offences as `file: what`, so that a failure reads as a list of places. */
const offences = (
  files: ReadonlyArray<SourceFile>,
  offends: (file: SourceFile) => ReadonlyArray<string>
): ReadonlyArray<string> => files.flatMap((file) => offends(file).map((what) => `${file.path}: ${what}`))

describe("imports in the edge", () => {
  it("point one way: cli, bootstrap, surfaces, run, node", () => {
    assert.deepStrictEqual(
      offences(edge, (file) => {
        const part = partOf(file.path)
        const allowed = mayImport[part]
        if (allowed === undefined) return [`${part} has no place in the order of imports`]
        return file.imports
          .filter(({ target }) => target.startsWith("apps/edge/src/"))
          .map(({ target }) => partOf(target))
          .filter((other) => other !== part && !allowed.includes(other))
          .map((other) => `${part} imports ${other}`)
      }),
      []
    )
  })

  it("keep sockets out of the runs, HTTP out of the transport and frames out of the surfaces", () => {
    assert.deepStrictEqual(
      offences(edge, (file) =>
        file.imports
          .filter(({ target }) => mustNotKnow[partOf(file.path)]?.some((module) => module.test(target)))
          .map(({ target }) => `imports ${target}`)
      ),
      []
    )
  })

  it("never reach the code of a node", () => {
    assert.deepStrictEqual(
      offences(edge, (file) =>
        file.imports
          .filter(({ target }) => target.startsWith("@iop/node-sdk/") || target.startsWith("mock-node/"))
          .map(({ target }) => `imports ${target}`)
      ),
      []
    )
  })

  it("were all seen: every part has files, and they import each other", () => {
    for (const part of ["node", "run", "transport", "http", "admin", "metrics", "bootstrap", "cli"]) {
      const files = edge.filter((file) => partOf(file.path) === part)
      assert.isAbove(files.length, 0, part)
      assert.isTrue(
        files.some((file) => file.imports.length > 0),
        `${part} imports nothing`
      )
    }
  })
})

describe("words of a boundary", () => {
  it("stay there: `model` is known to the OpenAI-compatible API alone", () => {
    assert.deepStrictEqual(
      offences(
        edge.filter((file) => partOf(file.path) !== "openai"),
        (file) => {
          const withoutStrings = file.code.replaceAll(/"(?:\\.|[^"\\\n])*"/g, '""')
          return [...withoutStrings.matchAll(/\b\w*model\w*\b/gi)].map(([word]) => word)
        }
      ),
      []
    )
  })

  it("become a NodeConfigPayload in node/configPayload.ts and nowhere else", () => {
    assert.deepStrictEqual(
      offences(
        edge.filter((file) => file.path !== "apps/edge/src/node/configPayload.ts"),
        (file) =>
          file.imports
            .filter(({ target, typeOnly }) => target.endsWith("/node_config_pb") && !typeOnly)
            .map(({ target }) => `imports values of ${target}`)
      ),
      []
    )
  })
})

describe("packages", () => {
  const mayUse: Readonly<Record<string, ReadonlyArray<string>>> = {
    "packages/proto-socket": [],
    "packages/platform-common": [],
    "packages/node-sdk": ["@iop/platform-common", "@iop/proto-socket"],
    "apps/mock-node": ["@iop/node-sdk", "@iop/platform-common", "@iop/proto-socket"]
  }
  for (const [folder, allowed] of Object.entries(mayUse)) {
    it(`${folder} uses ${allowed.length === 0 ? "none" : "no other"} of ours`, () => {
      const files = sourceFiles(`${folder}/src`)
      assert.isAbove(files.length, 0)
      assert.deepStrictEqual(
        offences(files, (file) =>
          file.imports
            .filter(({ target }) => /^(@iop\/|edge\/|mock-node\/)/.test(target))
            .filter(({ target }) => !allowed.some((name) => target.startsWith(`${name}/`)))
            .map(({ target }) => `imports ${target}`)
        ),
        []
      )
    })
  }
})
