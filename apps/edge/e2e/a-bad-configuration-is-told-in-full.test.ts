// What `edge check` and `edge serve` say about configurations that are wrong: every mistake at once, with its place and
// the way out, never with a secret, and exit code 2.
import { createServer } from "node:net"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { RawNode } from "./harness/RawNode.ts"
import { type CommandOptions, runCommand } from "./harness/runCommand.ts"
import { TempFolder } from "./harness/TempFolder.ts"

let cleanup: AsyncDisposableStack
let folder: TempFolder

beforeEach(() => {
  cleanup = new AsyncDisposableStack()
  folder = new TempFolder(cleanup)
})

afterEach(() => cleanup.disposeAsync())

/** Checks the text; the file is `edge.yaml`. */
const check = async (text: string | Uint8Array, options: CommandOptions = {}) => {
  const file = folder.write("edge.yaml", text)
  const result = await runCommand(["check", file], options)
  // The listener for nodes is open by default, of which a warning tells.
  const lines = result.stdout
    .trimEnd()
    .split("\n")
    .filter((line) => !line.includes("  warning: "))
  return { ...result, output: `${result.stdout}\n${result.stderr}`, lines }
}

/** A configuration without listeners that matter; `nodes` begins at line 2. */
const nodes = (...items: ReadonlyArray<string>): string => `nodes:\n${items.join("\n")}\n`

const noCrash = (output: string) => {
  expect(output).not.toMatch(/\bat .*\.ts:\d+|Maximum call stack|internal error|undefined|\[object/)
}

describe("edge check", () => {
  it("says of a good file that it is good, with exit code 0", async () => {
    const { code, output } = await check(nodes("  - id: tower", "    token: a-token-of-the-tower"))
    expect(output).toMatch(/good: 1 node/)
    expect(code).toBe(0)
  })

  it.each([
    ["empty", '    token: ""', {}],
    ["blank", '    token: "   "', {}],
    ["missing", "    labels: { gpu: none }", {}],
    ["a variable that expands to nothing", `    token: \${TOWER_TOKEN}`, { TOWER_TOKEN: "" }]
  ])("CF1 names the node and the place of a token that is %s", async (_what, line, env) => {
    const first = ["  - id: laptop", "    token: a-token-of-the-laptop"]
    const { code, output, lines } = await check(nodes(...first, "  - id: tower", line), { env })
    expect(code).toBe(2)
    expect(lines.length).toBe(1)
    expect(lines[0]).toMatch(/edge\.yaml:[45]:\d+ /)
    expect(lines[0]).toMatch(/nodes\[1\]/)
    expect(lines[0]).toMatch(/token/)
    expect(lines[0]).toContain("tower")
    noCrash(output)
  })

  it("CF2 names both nodes and lines of a token that two have, and not the token", async () => {
    const token = "one-token-for-two-nodes-4711"
    const { code, output } = await check(
      nodes("  - id: tower", `    token: ${token}`, "  - id: laptop", `    token: ${token}`)
    )
    expect(code).toBe(2)
    expect(output).toContain("tower")
    expect(output).toContain("laptop")
    expect(output).toMatch(/edge\.yaml:5:/)
    expect(output).toMatch(/line 3|edge\.yaml:3/)
    expect(output).not.toContain(token)
    noCrash(output)
  })

  it.each([
    ["two ids that are equal", "tower", "laptop-alias", /tower/],
    ["two aliases that are equal", "laptop", "gpu-1", /gpu-1/],
    ["an alias that is another node's id", "laptop", "tower", /tower/]
  ])("CF3 refuses %s and names both", async (_what, id, alias, name) => {
    const { code, output } = await check(
      nodes(
        "  - id: tower",
        "    alias: gpu-1",
        "    token: the-token-of-the-first",
        `  - id: ${id}`,
        `    alias: ${alias}`,
        "    token: the-token-of-the-second"
      )
    )
    expect(code).toBe(2)
    expect(output).toMatch(name)
    expect(output).toMatch(/edge\.yaml:[56]:/)
    expect(output).toMatch(/nodes\[0\]|line [23]|edge\.yaml:[23]/)
    noCrash(output)
  })

  it("CF4 names every variable that is not set, with the paths that use them", async () => {
    const { code, lines, output } = await check(
      nodes(
        "  - id: tower",
        `    token: \${TOWER_TOKEN_NOT_SET}`,
        "  - id: laptop",
        `    token: \${LAPTOP_TOKEN_NOT_SET}`
      )
    )
    expect(code).toBe(2)
    expect(lines.length).toBe(2)
    expect(lines[0]).toMatch(/edge\.yaml:3:.*nodes\[0\]\.token.*TOWER_TOKEN_NOT_SET/)
    expect(lines[1]).toMatch(/edge\.yaml:5:.*nodes\[1\]\.token.*LAPTOP_TOKEN_NOT_SET/)
    noCrash(output)
  })

  it("CF5 names an unknown key with its path and the nearest known one", async () => {
    const { code, output } = await check(
      nodes("  - id: tower", "    token: the-token-of-the-tower", "    adpaters: []")
    )
    expect(code).toBe(2)
    expect(output).toMatch(/edge\.yaml:4:.*nodes\[0\].*adpaters.*adapters/)
    noCrash(output)
  })

  it.each([
    [
      "slots: four",
      "nodes[0].runtime.slots",
      "    runtime: { slots: four }",
      /whole number.*four|four.*whole number/
    ],
    ["slots: 0", "nodes[0].runtime.slots", "    runtime: { slots: 0 }", /whole number/],
    ["slots: -1", "nodes[0].runtime.slots", "    runtime: { slots: -1 }", /whole number/],
    ["slots: 1.5", "nodes[0].runtime.slots", "    runtime: { slots: 1.5 }", /whole number/],
    ["port: 70000", "listen.http.port", "listen: { http: { port: 70000 } }", /65535/],
    ["a duration of 30", "runs.idle_timeout", "runs: { idle_timeout: 30 }", /30s|unit/],
    ["a duration of 30 parsecs", "runs.idle_timeout", "runs: { idle_timeout: 30 parsecs }", /30s|unit/],
    ["labels as a list", "nodes[0].labels", "    labels: [a, b]", /map.*list|list.*map/]
  ])("CF6 says what was expected and what was found for %s", async (_what, path, line, words) => {
    const node = ["  - id: tower", "    token: the-token-of-the-tower"]
    const { code, lines, output } = await check(
      line.startsWith(" ") ? nodes(...node, line) : `${line}\n${nodes(...node)}`
    )
    expect(code).toBe(2)
    expect(lines.length).toBe(1)
    expect(lines[0]).toContain(`${path}: `)
    expect(lines[0]).toMatch(words)
    noCrash(output)
  })

  it.each([
    ["a key twice", "edge: { id: a }\nedge: { id: b }\n"],
    ["a tab as indentation", "edge:\n\tid: a\n"],
    ["two documents", "edge: { id: a }\n---\nedge: { id: b }\n"]
  ])("CF7 refuses %s with line and column", async (_what, text) => {
    const { code, output } = await check(text)
    expect(code).toBe(2)
    expect(output).toMatch(/edge\.yaml:\d+:\d+/)
    noCrash(output)
  })

  const aliasBomb = [
    "a: &a [x, x, x, x, x, x, x, x, x]",
    ..."bcdefghi".split("").map((name, i) => {
      const before = "abcdefgh"[i]
      return `${name}: &${name} [${Array.from({ length: 9 }, () => `*${before}`).join(", ")}]`
    })
  ].join("\n")

  it.each([
    ["an alias bomb", () => aliasBomb],
    ["twenty thousand levels", () => `edge: ${"[".repeat(20_000)}${"]".repeat(20_000)}`],
    [
      "twenty thousand levels by indentation",
      () => {
        const lines = Array.from({ length: 3_000 }, (_, i) => `${" ".repeat(i)}a:`)
        return lines.join("\n")
      }
    ],
    ["fifty mebibytes", () => Buffer.alloc(50 * 1024 * 1024, "# a comment that goes on and on\n")]
  ])("CF8 refuses %s soon and in plain words", async (_what, make) => {
    // A process that needs more than this dies instead of answering.
    const env = { NODE_OPTIONS: "--max-old-space-size=256" }
    const { code, output, ms } = await check(make(), { boundMs: 30_000, env })
    expect(code).toBe(2)
    expect(output).toMatch(/edge\.yaml/)
    noCrash(output)
    // A second is the promise; the start of the process and a busy machine come on top.
    expect(ms).toBeLessThan(10_000)
  })

  it("CF9 refuses custom tags", async () => {
    const { code, output } = await check('edge: { id: !!js/function "function () {}" }\n')
    expect(code).toBe(2)
    expect(output).toMatch(/tag/)
    noCrash(output)
  })

  it("CF11 has one sentence for each file that is none", async () => {
    const cases: ReadonlyArray<readonly [string, string]> = [
      ["missing", `${folder.path}/not-there.yaml`],
      ["a directory", folder.path],
      ["empty", folder.write("empty.yaml", "")],
      ["UTF-16", folder.write("utf16.yaml", Buffer.from("\ufeffedge: { id: a }", "utf16le"))]
    ]
    for (const [what, file] of cases) {
      const { code, stdout, stderr } = await runCommand(["check", file])
      expect(code, what).toBe(2)
      expect(`${stdout}${stderr}`.trim().split("\n").length, what).toBe(1)
      noCrash(`${stdout}${stderr}`)
    }
    const good = "\ufeffnodes:\r\n  - id: tower\r\n    token: the-token-of-the-tower\r\n"
    expect((await check(good)).code).toBe(0)
  })

  const sevenMistakes = [
    "edge: { id: 'not a name', drain_timout: 3s }",
    "listen: { http: { port: 70000 } }",
    "nodes:",
    "  - id: tower",
    "    token: ''",
    "    adapters: [{ name: mock, type: mock }]",
    "  - id: laptop",
    "    token: 12345",
    "    runtime: { slots: four }",
    "    adapters: [{ name: mock, type: mock }]",
    "runs: { idle_timeout: 30 }",
    ""
  ].join("\n")

  it("CF13 tells seven mistakes as seven errors, sorted by line, and serve opens no listener", async () => {
    const { code, lines, output } = await check(sevenMistakes)
    expect(code).toBe(2)
    expect(lines.length).toBe(7)
    const places = lines.map((line) => Number(/edge\.yaml:(\d+):/.exec(line)?.[1]))
    expect(places).toEqual([1, 1, 2, 5, 8, 9, 11])
    noCrash(output)
    const port = await freePort()
    const file = folder.write(
      "serve.yaml",
      sevenMistakes.replace("port: 70000 }", `port: 70000 }, nodes: { host: 127.0.0.1, port: ${port} }`)
    )
    const served = await runCommand(["serve", "--config", file])
    expect(served.code).toBe(2)
    expect(served.stderr.split("\n").filter((line) => line.includes("serve.yaml:")).length).toBe(7)
    expect(served.stdout).toBe("")
    await expect(RawNode.connect(cleanup, { host: "127.0.0.1", port })).rejects.toThrow("ECONNREFUSED")
  })

  it("CF14 shows no token, key or expanded variable in any complaint", async () => {
    const secrets = {
      TOWER_TOKEN: "tower-secret-1-a b",
      LAPTOP_TOKEN: "laptop-secret-2",
      CLIENT_KEY: "client-secret-3",
      HEADER: "header-secret-4"
    }
    const text = [
      "api_keys:",
      `  - { name: one, key: "\${CLIENT_KEY}" }`,
      `  - { name: two, key: "\${CLIENT_KEY}" }`,
      "nodes:",
      `  - { id: tower, token: "\${TOWER_TOKEN}" }`,
      `  - { id: laptop, token: "\${LAPTOP_TOKEN}" }`,
      `  - { id: laptop, token: "\${LAPTOP_TOKEN}", adapters: [{ name: a, type: openai, base_url: "http://u:inline-secret-5@h/", headers: { "x y": "\${HEADER}" } }] }`,
      "  - { id: other, token: 67890123456 }",
      '  - { id: broken, token: "inline-secret-6',
      ""
    ].join("\n")
    const broken = await check(text, { env: secrets })
    const closed = await check(text.replace('"inline-secret-6', '"inline-secret-6\\n"}'), { env: secrets })
    for (const { code, output } of [broken, closed]) {
      expect(code).toBe(2)
      for (const secret of [...Object.values(secrets), "inline-secret-5", "inline-secret-6", "67890123456"]) {
        expect(output).not.toContain(secret)
      }
      noCrash(output)
    }
    expect(closed.lines.length).toBeGreaterThanOrEqual(5)
  })

  it("CF15 refuses an API key that is a node's token, and one that two have", async () => {
    const { code, output } = await check(
      [
        "api_keys:",
        "  - { name: one, key: the-same-secret-a }",
        "  - { name: two, key: the-same-secret-a }",
        "  - { name: three, key: the-same-secret-b }",
        ...nodes("  - { id: tower, token: the-same-secret-b }").split("\n")
      ].join("\n")
    )
    expect(code).toBe(2)
    for (const name of ["one", "two", "three", "tower"]) expect(output).toContain(name)
    expect(output).not.toContain("the-same-secret")
  })

  it("prints JSON and nothing else with --json", async () => {
    const file = folder.write("edge.yaml", sevenMistakes)
    const { code, stdout, stderr } = await runCommand(["check", file, "--json"])
    expect(code).toBe(2)
    expect(stderr).toBe("")
    const result = JSON.parse(stdout) as {
      ok: boolean
      problems: ReadonlyArray<{ line: number; path: string }>
    }
    expect(result.ok).toBe(false)
    expect(result.problems.length).toBe(7)
  })
})

/** A port that nobody uses at this moment. */
const freePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("no port")
  await new Promise<void>((resolve) => server.close(() => resolve()))
  return address.port
}
