// The command against the real edge and the real fake node: no rule is broken.
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { edgeRules } from "../src/rules/edge/edgeRules.ts"
import { nodeRules } from "../src/rules/node/nodeRules.ts"
import { ADMIN_KEY, MOCK_NODE, SECOND_TOKEN, startEdge, TOKEN } from "./processes.ts"

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url))

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const conformance = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
  new Promise((resolve, reject) => {
    const { HOME = "", PATH = "" } = process.env
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { HOME, PATH, NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text
    })
    child.once("error", reject)
    child.once("close", (code) => resolve({ code, stdout, stderr }))
  })

const notTestable = (rules: typeof edgeRules | typeof nodeRules) =>
  rules.filter((rule) => "notTestable" in rule).map(({ id }) => id)

/** Rules of the lines that begin so. */
const idsOf = (stdout: string, start: string) =>
  stdout.split("\n").flatMap((line) => (line.startsWith(`${start} `) ? (line.split(" ")[1] ?? []) : []))

test("the edge breaks no rule", { timeout: 300_000 }, async () => {
  await using cleanup = new AsyncDisposableStack()
  const edge = await startEdge(cleanup)
  const { host, port } = edge.nodes
  const ran = await conformance(
    ["--edge", `${host}:${port}`, "--admin", edge.http, "--slow", "--patience", "15"],
    { IOP_NODE_TOKEN: TOKEN, IOP_SECOND_NODE_TOKEN: SECOND_TOKEN, IOP_EDGE_KEY: ADMIN_KEY }
  )
  expect(idsOf(ran.stdout, "FAIL"), ran.stdout + ran.stderr).toEqual([])
  expect(ran.stdout).not.toContain("not tested")
  expect(idsOf(ran.stdout, "--")).toEqual(notTestable(edgeRules))
  const left = notTestable(edgeRules).length
  expect(ran.stdout.trimEnd().split("\n").at(-1)).toBe(
    `${edgeRules.length - left} ok, 0 failed, ${left} not testable`
  )
  expect(ran.code).toBe(0)
})

test("the bundled fake node breaks no rule", { timeout: 300_000 }, async () => {
  const ran = await conformance(
    [
      "--listen",
      "0",
      "--patience",
      "15",
      "--json",
      "--strict",
      "--",
      process.execPath,
      MOCK_NODE,
      "--edge",
      "{edge}"
    ],
    { IOP_NODE_TOKEN: TOKEN }
  )
  const report = JSON.parse(ran.stdout) as {
    readonly ok: number
    readonly rules: ReadonlyArray<{ readonly id: string; readonly outcome: string; readonly detail: string }>
  }
  expect(report.rules.filter(({ outcome }) => outcome === "failed")).toEqual([])
  expect(report.rules.flatMap(({ id, outcome }) => (outcome === "not_testable" ? id : []))).toEqual(
    notTestable(nodeRules)
  )
  // A minute each: only those that are slow by the rules themselves.
  for (const { detail, outcome } of report.rules) {
    if (outcome === "ok" && detail !== "") expect(detail).toMatch(/add --slow$/)
  }
  expect(ran.code, ran.stderr).toBe(0)
})

test("without an admin API the rules about runs are not testable, and say what they need", async () => {
  await using cleanup = new AsyncDisposableStack()
  const edge = await startEdge(cleanup)
  const folder = mkdtempSync(join(tmpdir(), "iop-conformance-"))
  cleanup.defer(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, "token")
  writeFileSync(file, `${TOKEN}\n`)
  const { host, port } = edge.nodes
  const ran = await conformance(["--edge", `${host}:${port}`, "--token-file", file, "--only", "R-RUN"])
  expect(ran.stdout).toContain(
    "-- R-RUN-3 not testable from this side: somebody has to submit runs: give --admin URL\n"
  )
  expect(ran.stdout).toContain("ok R-RUN-1 ")
  const others = edgeRules.filter(({ id }) => id.startsWith("R-RUN-")).length - 1
  expect(ran.stdout).toContain(`1 ok, 0 failed, ${others} not testable\n`)
  expect(ran.code).toBe(0)

  const wrong = await conformance(["--edge", `${host}:${port}`, "--token", "a-wrong-token-0123456789"])
  expect(wrong.stderr).toContain("arguments are visible")
  expect(wrong.stderr).toContain("the edge cannot be judged")
  expect(wrong.stderr).not.toContain("a-wrong-token")
  expect(wrong.code).toBe(3)
})

test("a command line that says nothing to judge is refused with exit code 2", async () => {
  for (const args of [
    [],
    ["--edge", "127.0.0.1:1", "--listen", "1"],
    ["--edge", "nowhere"],
    ["--edge", "127.0.0.1:1"],
    ["--listen", "0", "--only", "R-NO-1", "--", process.execPath]
  ]) {
    const ran = await conformance(args)
    expect(ran.code, `${args.join(" ")}: ${ran.stderr}`).toBe(2)
    expect(ran.stderr).toMatch(/^conformance: /m)
    expect(ran.stderr).not.toMatch(/^\s+at /m)
  }
})

test("an edge that is not there is said to be out of reach", async () => {
  const ran = await conformance(["--edge", "127.0.0.1:1"], { IOP_NODE_TOKEN: TOKEN })
  expect(ran.stderr).toContain("conformance: the edge cannot be judged")
  expect(ran.code).toBe(3)
})
