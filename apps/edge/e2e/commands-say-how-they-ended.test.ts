// The commands that talk to a running edge: what they print where, and the exit codes that scripts go by.
import { describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { MockNode } from "./harness/MockNode.ts"
import { type CommandOptions, runCommand, startCommand } from "./harness/runCommand.ts"
import { TempFolder } from "./harness/TempFolder.ts"
import { useEdge } from "./harness/useEdge.ts"

/** Nobody listens there. */
const NOWHERE = "http://127.0.0.1:9"

describe("commands and their edge", () => {
  const shared = useEdge({ nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop")] })

  const mockNode = async () => {
    new MockNode(shared.cleanup, { edge: shared.edge.nodes, token: tokenOf("tower") })
    await shared.edge.admin.untilNode("tower", "routable")
  }
  const command = (args: ReadonlyArray<string>, options?: CommandOptions) =>
    runCommand([...args, "--connect", shared.edge.admin.base], options)

  it("0: nodes --json prints JSON and nothing else", async () => {
    await mockNode()
    const { code, stdout, stderr } = await command(["nodes", "--json"])
    expect(code).toBe(0)
    expect(stderr).toBe("")
    const nodes = JSON.parse(stdout) as ReadonlyArray<{ id: string; state: string }>
    expect(nodes.map(({ id, state }) => [id, state])).toEqual([
      ["tower", "routable"],
      ["laptop", "offline"],
      ["spare", "offline"]
    ])
  })

  it("0: one node, the runs, an explanation and the version, as JSON where asked for", async () => {
    await mockNode()
    const one = await command(["nodes", "tower-alias", "--json"])
    expect(JSON.parse(one.stdout)).toMatchObject({ id: "tower", alias: "tower-alias" })
    expect((await command(["run", "mock", "echo", "counted"])).code).toBe(0)
    const runs = await command(["runs", "--json"])
    expect(JSON.parse(runs.stdout)[0]).toMatchObject({ phase: "completed", adapter: "mock", target: "echo" })
    const explained = await command(["explain", "mock", "echo", "--json"])
    expect(JSON.parse(explained.stdout)).toMatchObject({ chosen: "tower-alias" })
    for (const { code, stderr } of [one, runs, explained]) {
      expect(code).toBe(0)
      expect(stderr).toBe("")
    }
    const version = await runCommand(["version"])
    expect(version.code).toBe(0)
    expect(version.stdout).toMatch(/\d+\.\d+\.\d+/)
  })

  it("0: run prints the answer, from an argument or from a pipe, and events with --json", async () => {
    await mockNode()
    const argument = await command(["run", "mock", "echo", "나무 tree 🌳"])
    expect(argument).toMatchObject({ code: 0, stdout: "나무 tree 🌳\n", stderr: "" })
    const piped = await command(["run", "mock", "echo"], { input: "two\nlines" })
    expect(piped).toMatchObject({ code: 0, stdout: "two\nlines\n", stderr: "" })
    const events = await command(["run", "mock", "echo", "x", "--json"])
    const lines = events.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { type: string; run: string })
    expect(lines.map(({ type }) => type)).toEqual(["dispatched", "started", "delta", "usage", "completed"])
    const runs = JSON.parse((await command(["runs", "--limit", "1", "--json"])).stdout) as [{ id: string }]
    expect(new Set(lines.map(({ run }) => run))).toEqual(new Set([runs[0].id]))
    const words = await command(["run", "mock", "echo", "hello", "world"])
    expect(words).toMatchObject({ code: 0, stdout: "hello world\n", stderr: "" })
  })

  it("0: a console needs no flag to find the edge that the environment names", async () => {
    await mockNode()
    const env = { IOP_EDGE_URL: shared.edge.admin.base }
    const result = await runCommand(["console", "mock", "echo"], { env, input: "hello\n" })
    expect(result).toMatchObject({ code: 0, stdout: "hello\n" })
  })

  it("0: a node is cordoned, uncordoned and drained, and says how it is", async () => {
    await mockNode()
    expect(await command(["cordon", "tower"])).toMatchObject({
      code: 0,
      stdout: "tower-alias is cordoned: an operator keeps new runs away\n",
      stderr: ""
    })
    const json = await command(["uncordon", "tower-alias", "--json"])
    expect(JSON.parse(json.stdout)).toMatchObject({ id: "tower", state: "routable", cordoned: false })
    const drained = await command(["drain", "tower"])
    expect(await command(["uncordon", "tower"])).toMatchObject({ code: 0 })
    expect(drained.code).toBe(0)
    expect(drained.stdout).toMatch(/^tower-alias is /)
    expect((await command(["drain", "nobody"])).code).toBe(2)
  })

  it("0: a detached run goes on by itself, is watched from anywhere, and cancelled", async () => {
    const node = await shared.node("tower")
    const started = await command(["run", "mock", "echo", "x", "--detach"])
    const run = await node.nextRun()
    expect(started).toMatchObject({ code: 0, stdout: `${run.request.runId}\n`, stderr: "" })
    run.onCancel = () => run.stopped()
    run.started().delta("some words\n")
    const { runId } = run.request
    const child = startCommand(shared.cleanup, ["events", runId, "--connect", shared.edge.admin.base])
    await child.line("the answer", (line) => line === "some words")
    expect(await command(["cancel", runId])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(`^${runId} is cancell(ing|ed)\n$`)
    })
    expect(await child.end()).toMatchObject({ code: 1 })
    expect(child.stderr.join("\n")).toContain(`run ${runId} was cancelled`)
    const rest = await command(["events", runId, "--after", "2", "--json"])
    const lines = rest.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { type: string; seq: number; run: string })
    expect(lines[0]).toMatchObject({ run: runId, seq: 3 })
    expect(lines.at(-1)).toMatchObject({ type: "cancelled" })
  })

  it("1: a run that fails is told on stderr with its code and no stack", async () => {
    await mockNode()
    for (const target of ["fail-first", "fail-mid"]) {
      const { code, stderr } = await command(["run", "mock", target, "x"])
      expect(code, target).toBe(1)
      expect(stderr, target).toMatch(/adapter_error/)
      expect(stderr, target).not.toMatch(/\bat .*\.ts:\d+/)
    }
    const console_ = await runCommand(["console", "--connect", shared.edge.admin.base, "mock", "fail-mid"], {
      input: "x\n"
    })
    expect(console_.code).toBe(1)
  })

  it("1: a target that nobody has is an error that names it", async () => {
    await mockNode()
    const { code, stderr } = await command(["run", "mock", "no-such-target", "x"])
    expect(code).toBe(1)
    expect(stderr).toContain("no-such-target")
  })

  it.each([
    ["an unknown command", ["frobnicate"]],
    ["an unknown flag", ["nodes", "--frobnicate"]],
    ["a missing argument", ["run", "mock"]],
    ["no edge to serve", ["serve"]],
    ["two edges to serve", ["serve", "--local", "--config", "edge.yaml"]],
    ["a file that is not there", ["serve", "--config", "/no/such/edge.yaml"]],
    ["an address that is none", ["nodes", "--connect", "not-an-address"]],
    [
      "a port that is none",
      ["serve", "--local", "--node-port", "80000"],
      "--node-port: 80000 is not a port (0 to 65535)"
    ],
    [
      "a label without a value",
      ["run", "mock", "echo", "x", "--label", "room"],
      "--label needs KEY=VALUE, got room"
    ],
    ["no number of runs", ["runs", "--limit", "0"], "--limit: 0 is not a number of runs (1 to "],
    ["two edges for a console", ["console", "--local", "--connect", NOWHERE], "say one edge"]
  ])("2: %s is told in a sentence", async (_what, args, sentence = "") => {
    const { code, stdout, stderr } = await runCommand(args)
    expect(code).toBe(2)
    expect(stdout).toBe("")
    expect(stderr.trim()).not.toBe("")
    expect(stderr).toContain(sentence)
    expect(stderr).not.toMatch(/\bat .*\.ts:\d+|internal error/)
  })

  it("2: an unknown node is told by name", async () => {
    const { code, stdout, stderr } = await command(["nodes", "nobody"])
    expect(code).toBe(2)
    expect(stdout).toBe("")
    expect(stderr).toContain("nobody")
  })

  it.each([
    ["nodes", ["nodes", "--json"]],
    ["runs", ["runs"]],
    ["run", ["run", "mock", "echo", "x"]],
    ["explain", ["explain", "mock", "echo"]],
    ["console", ["console", "mock", "echo"]]
  ])("3: %s says that there is no edge, and where it looked", async (_name, args) => {
    const { code, stdout, stderr } = await runCommand([...args, "--connect", NOWHERE], { input: "x\n" })
    expect(code).toBe(3)
    expect(stdout).toBe("")
    expect(stderr).toContain("127.0.0.1:9")
    expect(stderr).not.toMatch(/\bat .*\.ts:\d+/)
  })

  it("130: an interrupted run is cancelled at the edge", async () => {
    const node = await shared.node("tower")
    const child = startCommand(shared.cleanup, [
      "run",
      "mock",
      "echo",
      "x",
      "--connect",
      shared.edge.admin.base
    ])
    const run = await node.nextRun()
    run.onCancel = () => run.stopped()
    run.started().delta("some words\n")
    await child.line("the answer", (line) => line === "some words")
    const { code } = await child.stop("SIGINT")
    expect(code).toBe(130)
    expect(child.stderr).toEqual([`edge: run ${run.request.runId} was cancelled: you interrupted it`])
    await run.untilCancelled()
    await shared.edge.admin.untilRun(run.request.runId, ["cancelled"])
  })

  it("130: an interrupted console cancels its run and reads no further", async () => {
    const node = await shared.node("tower")
    const child = startCommand(
      shared.cleanup,
      ["console", "--connect", shared.edge.admin.base, "mock", "echo"],
      { input: "" }
    )
    child.write("first\nsecond\n")
    const run = await node.nextRun()
    run.onCancel = () => run.stopped()
    run.started().delta("some words\n")
    await child.line("the answer", (line) => line === "some words")
    const { code } = await child.stop("SIGINT")
    expect(code).toBe(130)
    await run.untilCancelled()
    expect(node.runs.size).toBe(1)
  })

  it("0: a reader who leaves the pipe ends a console quietly, and its run", async () => {
    const node = await shared.node("tower")
    const child = startCommand(
      shared.cleanup,
      ["console", "--connect", shared.edge.admin.base, "mock", "echo"],
      { input: "" }
    )
    child.write("go\n")
    const run = await node.nextRun()
    run.onCancel = () => run.stopped()
    run.started().delta("line\n")
    await child.line("the answer", (line) => line === "line")
    child.closeOutput()
    const talk = setInterval(() => run.cancelled === undefined && run.delta("line\n"), 20)
    shared.cleanup.defer(() => clearInterval(talk))
    await run.untilCancelled()
    const { signal } = await child.end()
    expect(signal).toBeUndefined()
    expect(child.stderr.join("\n")).not.toMatch(/EPIPE|\bat .*\.ts:\d+/)
  })
})

describe("commands and an edge with keys", () => {
  const key = "the-key-of-the-laptop-0123456789"
  const shared = useEdge({ nodes: [mockNodeConfig("tower")], api_keys: [{ name: "laptop", key }] }, { key })

  it("2: no key and a wrong key are refused, the right one is taken from the environment or a file", async () => {
    const nodes = (options?: CommandOptions, ...more: ReadonlyArray<string>) =>
      runCommand(["nodes", "--json", "--connect", shared.edge.admin.base, ...more], options)
    for (const [env, what] of [
      [{}, "none was sent"],
      [{ IOP_EDGE_KEY: "wrong-key-4711" }, "does not accept the API key"]
    ] as const) {
      const { code, stdout, stderr } = await nodes({ env })
      expect(code).toBe(2)
      expect(stdout).toBe("")
      expect(stderr).toContain(what)
      expect(stderr).toMatch(/IOP_EDGE_KEY.*--key-file/)
      expect(stderr).not.toContain("wrong-key-4711")
    }
    expect((await nodes({ env: { IOP_EDGE_KEY: key } })).code).toBe(0)
    const file = new TempFolder(shared.cleanup).write("key", `${key}\n`)
    expect((await nodes({}, "--key-file", file)).code).toBe(0)
    expect(shared.edge.stderr.join("\n")).not.toContain(key)
  })
})
