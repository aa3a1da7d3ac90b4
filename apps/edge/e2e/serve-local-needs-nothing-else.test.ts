// The built-in profile: one command and there is an edge with two nodes, real processes over real TCP, and nothing of
// them is left when it ends.
import { readFileSync } from "node:fs"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { ChildProcess } from "./harness/ChildProcess.ts"
import { runCommand, startCommand } from "./harness/runCommand.ts"
import { eventually } from "./harness/waiting.ts"

let cleanup: AsyncDisposableStack

beforeEach(() => {
  cleanup = new AsyncDisposableStack()
})

afterEach(() => cleanup.disposeAsync())

const anyPorts = ["--node-port", "0", "--http-port", "0", "--ops-port", "0"]

const urlOf = (edge: ChildProcess) =>
  edge.line("where http listens", (line) => /^\s+http\s+(http:\S+)$/.exec(line)?.[1])

/** Process ids of the children that a process has now. */
const childrenOf = (pid: number): ReadonlyArray<number> =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number)

const lives = (pid: number): boolean => {
  try {
    // A zombie that nobody has collected is no process any more.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}

describe("edge serve --local", () => {
  it("reaches two registered nodes, serves a run and ends with everything it started", async () => {
    const start = performance.now()
    const edge = startCommand(cleanup, ["serve", "--local", ...anyPorts])
    const url = await urlOf(edge)
    console.log(`serve --local was ready with its nodes after ${Math.round(performance.now() - start)} ms`)
    const listed = await runCommand(["nodes", "--json", "--connect", url])
    const nodes = JSON.parse(listed.stdout) as ReadonlyArray<{ id: string; state: string }>
    expect(nodes.map(({ state }) => state)).toEqual(["routable", "routable"])
    const run = await runCommand(["run", "mock", "echo", "hello there", "--connect", url])
    expect(run).toMatchObject({ code: 0, stdout: "hello there\n" })
    const children = childrenOf(edge.pid)
    expect(children.length).toBe(2)
    const { code } = await edge.stop("SIGINT")
    expect(code).toBe(0)
    await eventually("the fake nodes to be gone", () => !children.some(lives))
  })

  it("leaves no fake node behind when it is killed", async () => {
    const edge = startCommand(cleanup, ["serve", "--local", ...anyPorts])
    await urlOf(edge)
    const children = childrenOf(edge.pid)
    expect(children.length).toBe(2)
    await edge.kill()
    await eventually("the fake nodes to be gone", () => !children.some(lives))
  })

  it("says so when a fake node dies, and goes on with the other", async () => {
    const edge = startCommand(cleanup, ["serve", "--local", ...anyPorts])
    const url = await urlOf(edge)
    process.kill(childrenOf(edge.pid)[0] ?? 0, "SIGKILL")
    const told = await edge.line("that a fake node died", (line) =>
      line.includes("fake node ended") ? (JSON.parse(line) as Record<string, unknown>) : undefined
    )
    expect(told).toMatchObject({
      message: "fake node ended; it stays away until the edge is started again",
      how: "was killed by SIGKILL",
      node: expect.stringMatching(/^fake-/)
    })
    const run = await runCommand(["run", "mock", "echo", "still", "--connect", url])
    expect(run).toMatchObject({ code: 0, stdout: "still\n" })
  })

  it("shows no token anywhere", async () => {
    const edge = startCommand(cleanup, ["serve", "--local", ...anyPorts])
    const url = await urlOf(edge)
    const tokens = childrenOf(edge.pid).map((pid) => {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0")
      return (
        environment.find((entry) => entry.startsWith("IOP_NODE_TOKEN="))?.slice("IOP_NODE_TOKEN=".length) ??
        ""
      )
    })
    expect(tokens.every((token) => token.length >= 32)).toBe(true)
    const { stdout } = await runCommand(["nodes", "--json", "--connect", url])
    await edge.stop("SIGTERM")
    const shown = [stdout, ...edge.stdout, ...edge.stderr].join("\n")
    for (const token of tokens) expect(shown).not.toContain(token)
  })
})

describe("edge console --local", () => {
  it("answers prompts from a pipe with nothing else on stdout", async () => {
    const { code, stdout } = await runCommand(["console", "--local", ...anyPorts, "mock", "echo"], {
      input: "안녕\nhello\n"
    })
    expect(stdout).toBe("안녕\nhello\n")
    expect(code).toBe(0)
  })
})
