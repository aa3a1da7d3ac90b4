// SL5: consoles whose output is cut off, not read, or whose terminal goes away: a quiet end or a console that waits,
// and an edge in the same process that serves on meanwhile.
import { createServer } from "node:net"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { AdminClient } from "./harness/AdminClient.ts"
import { ChildProcess } from "./harness/ChildProcess.ts"
import { configText, mockNodeConfig, tokenOf } from "./harness/config.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { MockNode } from "./harness/MockNode.ts"
import { edgeArgs } from "./harness/runCommand.ts"
import { TempFolder } from "./harness/TempFolder.ts"
import { eventually, within } from "./harness/waiting.ts"

const host = "127.0.0.1"

/** Ports that nobody has at the moment. */
const freePorts = async (count: number): Promise<ReadonlyArray<number>> => {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map((server) =>
      within(
        "a port",
        new Promise<number>((resolve) =>
          server.listen(0, host, () => {
            const address = server.address()
            resolve(typeof address === "object" && address !== null ? address.port : 0)
          })
        )
      )
    )
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

const quote = (argument: string): string => `'${argument.replaceAll("'", "'\\''")}'`

/** A command line of the edge for a shell. */
const shellLine = (args: ReadonlyArray<string>): string =>
  [process.execPath, ...edgeArgs(args)].map(quote).join(" ")

/** Output that no pipe holds. */
const FLOOD = 'x {"tokens": 20000, "size": 1000}'

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe("a console whose output goes away", () => {
  let cleanup: AsyncDisposableStack
  beforeEach(() => {
    cleanup = new AsyncDisposableStack()
  })
  afterEach(() => cleanup.disposeAsync())

  const startEdge = async () => {
    const edge = await EdgeProcess.start(cleanup, { nodes: [mockNodeConfig("tower")] })
    new MockNode(cleanup, { edge: edge.nodes, token: tokenOf("tower") })
    await edge.admin.untilNode("tower", "routable")
    return edge
  }

  /** A console with an edge of its own, on known ports. */
  const startOwn = async (shell?: (line: string) => string) => {
    const [nodes = 0, http = 0, ops = 0] = await freePorts(3)
    const config = new TempFolder(cleanup).write(
      "edge.yaml",
      configText({
        nodes: [mockNodeConfig("tower")],
        listen: { nodes: { port: nodes }, http: { port: http }, ops: { port: ops } }
      })
    )
    const args = ["console", "mock", "flood", "--config", config]
    const console_ = new ChildProcess(cleanup, {
      name: "edge console --config",
      input: true,
      ...(shell === undefined
        ? { args: edgeArgs(args) }
        : { executable: "bash", args: ["-c", shell(shellLine(args))] })
    })
    const admin = new AdminClient(`http://${host}:${http}`, `http://${host}:${ops}`)
    await eventually("the console's edge", async () => (await admin.status("/healthz")) === 200)
    new MockNode(cleanup, { edge: { host, port: nodes }, token: tokenOf("tower") })
    await admin.untilNode("tower", "routable")
    return { console_, admin }
  }

  const serves = async (admin: AdminClient) => {
    expect(await admin.status("/healthz")).toBe(200)
    const stream = await admin.stream({ adapter: "mock", target: "echo", prompt: "are you there?" })
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe("are you there?")
  }

  it("SL5 ends quietly when the reader of its pipe has seen enough, and its run is cancelled", async () => {
    const edge = await startEdge()
    const line = shellLine(["console", "mock", "flood", "--connect", edge.admin.base])
    const pipeline = new ChildProcess(cleanup, {
      name: "edge console | head -c 100",
      executable: "bash",
      args: ["-c", `${line} | head -c 100; echo "codes \${PIPESTATUS[*]}" >&2`],
      input: true
    })
    pipeline.write(`${FLOOD}\nnever to be read\n`)
    await pipeline.end()
    // Nothing but the shell's own line: no stack, no EPIPE.
    expect(pipeline.stderr).toEqual(["codes 0 0"])
    expect(pipeline.stdoutBytes.length).toBe(100)
    const [run] = await edge.admin.runs()
    await edge.admin.untilRun(run?.id ?? "", ["cancelled", "completed"])
    await serves(edge.admin)
  })

  it("SL5 ends quietly with the edge of its own, which drains", async () => {
    const { console_, admin } = await startOwn(
      (line) => `${line} | head -c 100; echo "codes \${PIPESTATUS[*]}" >&2`
    )
    await serves(admin)
    console_.write(`${FLOOD}\nnever to be read\n`)
    await console_.end()
    expect(console_.stdoutBytes.length).toBe(100)
    expect(console_.stderr.at(-1)).toBe("codes 0 0")
    expect(console_.stderr.join("\n")).not.toMatch(/EPIPE|internal error|at .*\.ts:\d+/)
    await expect(admin.status("/healthz")).rejects.toThrow()
  })

  it("SL5 waits when nobody reads its output, and the edge of its own serves on", async () => {
    const { console_, admin } = await startOwn()
    console_.pauseOutput("stdout")
    console_.write(`${FLOOD}\n`)
    const run = await eventually("the run of the console", async () => (await admin.runs())[0])
    await eventually("the run to stand still", async () => {
      const before = (await admin.run(run.id)).events
      await serves(admin)
      return before > 1 && before === (await admin.run(run.id)).events
    })
    expect((await admin.run(run.id)).phase).toBe("streaming")
    await serves(admin)
    console_.resumeOutput("stdout")
    await admin.untilRun(run.id, ["completed"])
    console_.endInput()
    expect((await console_.end()).code).toBe(0)
    const filler = "x".repeat(1_000)
    const pieces = Array.from({ length: 20_000 }, (_, i) => `${i} ${filler}`.slice(0, 1_000))
    expect(console_.stdoutBytes.toString() === `${pieces.join("")}\n`).toBe(true)
  })

  it("SL5 ends quietly when its terminal goes away in the middle of an answer", async () => {
    const edge = await startEdge()
    const line = shellLine(["console", "mock", "lorem", "--connect", edge.admin.base])
    const terminal = new ChildProcess(cleanup, {
      name: "edge console in a terminal",
      executable: "script",
      args: ["-qec", `echo "pid $$"; exec ${line}`, "/dev/null"],
      env: { TERM: "xterm", SHELL: "/bin/bash" },
      input: true
    })
    const pid = await terminal.line("the console's process", (text) => /pid (\d+)/.exec(text)?.[1])
    await eventually("its prompt", () => terminal.stdoutBytes.includes("mock/lorem>"))
    terminal.write('x {"tokens": 5000}\r')
    const run = await eventually("its run", async () => (await edge.admin.runs())[0])
    await edge.admin.untilRun(run.id, ["streaming"])
    expect(isAlive(Number(pid))).toBe(true)
    await terminal.kill()
    await eventually("the end of the console", () => !isAlive(Number(pid)))
    await edge.admin.untilRun(run.id, ["cancelled"])
    await serves(edge.admin)
  })
})
