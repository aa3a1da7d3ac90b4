// What is deployed: the bundles as `build` makes them, in a folder where nothing is installed, on plain Node.
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, readFileSync, statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { ChildProcess } from "./harness/ChildProcess.ts"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { TempFolder } from "./harness/TempFolder.ts"

const workspace = resolve(import.meta.dirname, "../../..")

interface Manifest {
  readonly version: string
  readonly bin: Readonly<Record<string, string>>
  readonly scripts: { readonly build?: string }
}

const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest

/** Runs the `build` script of an app, but into another folder. It prints nothing when all is well. */
const build = (app: string, out: string): void => {
  const folder = join(workspace, "apps", app)
  const [program, ...args] = (manifestOf(folder).scripts.build ?? "").split(" ")
  assert.strictEqual(program, "node")
  const { status, stderr, stdout } = spawnSync(process.execPath, [...args, "--out", out], {
    cwd: folder,
    encoding: "utf8"
  })
  assert.deepStrictEqual({ status, output: stdout + stderr }, { status: 0, output: "" })
}

/** Node's own warnings, of which a user is to see none. */
const warnings = (child: ChildProcess): ReadonlyArray<string> =>
  [...child.stdout, ...child.stderr].filter((line) => /warning/i.test(line))

describe("the bundle of", () => {
  const whole = new AsyncDisposableStack()
  const folders = { edge: "", "mock-node": "" }
  beforeAll(() => {
    const temp = new TempFolder(whole)
    for (const app of ["edge", "mock-node"] as const) {
      folders[app] = join(temp.path, app)
      build(app, folders[app])
    }
  })
  afterAll(() => whole.disposeAsync())

  it.each([
    ["edge", "iop-edge"],
    ["mock-node", "iop-mock-node"]
  ] as const)("%s is a command of its version", async (app, command) => {
    await using cleanup = new AsyncDisposableStack()
    const source = manifestOf(join(workspace, "apps", app))
    const deployed = manifestOf(folders[app])
    assert.deepStrictEqual(Object.keys(deployed.bin), [command])
    assert.deepStrictEqual(source.bin, { [command]: `./dist/${deployed.bin[command]}` })
    assert.strictEqual(deployed.version, source.version)

    const file = join(folders[app], deployed.bin[command] ?? "")
    assert.strictEqual(statSync(file).mode & 0o111, 0o111)
    assert.isTrue(existsSync(file.replace(/\.js$/, ".main.js.map")))
    // By its own name, as a shell starts it: the first line of the file finds `node` on the path.
    const path = `${dirname(process.execPath)}:${process.env.PATH}`
    assert.strictEqual(
      execFileSync(file, ["--version"], { encoding: "utf8", env: { PATH: path } }).trim(),
      `${app} v${source.version}`
    )
    const child = new ChildProcess(cleanup, { name: command, args: [file, "--version"], cwd: folders[app] })
    assert.deepStrictEqual(await child.end(), { code: 0, signal: undefined })
    assert.deepStrictEqual(warnings(child), [])
  })

  it.each([
    ["edge", "edge.js", "iop-edge"],
    ["edge", "mock-node.js", "mock-node"],
    ["mock-node", "mock-node.js", "iop-mock-node"]
  ] as const)("%s says in a sentence that %s needs a newer Node", async (app, file, command) => {
    await using cleanup = new AsyncDisposableStack()
    const old = `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.20.2"}})`
    const child = new ChildProcess(cleanup, {
      name: command,
      args: ["--import", old, file, "--version"],
      cwd: folders[app]
    })
    assert.deepStrictEqual(await child.end(), { code: 2, signal: undefined })
    assert.deepStrictEqual(child.stderr, [`${command} needs Node 24 or newer, this is 20.20.2`])
    // What runs before the check must link on any Node.
    assert.notMatch(readFileSync(join(folders[app], file), "utf8"), /^import /m)
  })

  it("edge serves the local profile with its two fake nodes, and ends well on SIGTERM", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = new ChildProcess(cleanup, {
      name: "iop-edge serve --local",
      args: ["edge.js", "serve", "--local", "--node-port", "0", "--http-port", "0", "--ops-port", "0"],
      cwd: folders.edge
    })
    for (const node of ["fake-a", "fake-b"]) {
      await edge.line(`${node} is routable`, (line) => line.startsWith(node) && line.includes("routable"))
    }
    assert.deepInclude(await edge.stop("SIGTERM"), { code: 0, signal: undefined })
    assert.deepStrictEqual(warnings(edge), [])
  })

  it("mock-node joins an edge and ends well on SIGTERM", async () => {
    await using cleanup = new AsyncDisposableStack()
    const edge = await EdgeProcess.start(cleanup, { nodes: [mockNodeConfig("box")] })
    const node = new ChildProcess(cleanup, {
      name: "iop-mock-node",
      args: ["mock-node.js", "--edge", `${edge.nodes.host}:${edge.nodes.port}`],
      cwd: folders["mock-node"],
      env: { IOP_NODE_TOKEN: tokenOf("box") }
    })
    await edge.admin.untilNode("box", "routable")
    assert.deepInclude(await node.stop("SIGTERM"), { code: 0, signal: undefined })
    assert.deepStrictEqual(warnings(node), [])
  })
})
