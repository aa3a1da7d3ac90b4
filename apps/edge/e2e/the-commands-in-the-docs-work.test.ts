// Whoever copies a command from the documentation gets what the documentation says. Each page is one terminal: its
// `sh` blocks run in their order. Only ports and the place of the files that they write are others.
import { readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { type BackgroundCommand, DocShell } from "./harness/DocShell.ts"
import { type CommandBlock, docPages, missingLines, workspace } from "./harness/docPages.ts"
import { TempFolder } from "./harness/TempFolder.ts"
import { eventually } from "./harness/waiting.ts"

const ciScript = readFileSync(join(workspace, ".ci/run"), "utf8")

/** Whether `.ci/run` runs every command of the block itself: the tests don't start the tests. */
const runByCi = (block: CommandBlock): boolean =>
  block.text
    .split("\n")
    .every(
      (line) =>
        line === ".ci/run" ||
        (line.startsWith("npx -y pnpm@12 ") &&
          (ciScript.includes(` ${line}\n`) ||
            ciScript.includes(` ${line.replace("npx -y pnpm@12", "pnpm")}`)))
    )

const startsEdge = (text: string): boolean => /--filter edge start$|\bserve\b/.test(text)
/** The edge with fake nodes of its own; they join a moment after it is ready. */
const bringsNodes = (text: string): boolean => /--filter edge start$/.test(text)
const startsNode = (text: string): boolean => /--filter mock-node start\b|examples\/\w+Node\.ts\b/.test(text)

/** Ports that nobody listens on at this moment. */
const freePorts = async (count: number): Promise<ReadonlyArray<number>> => {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer().listen(0, "127.0.0.1", () => resolve(server))
        })
    )
  )
  return Promise.all(
    servers.map(async (server) => {
      const address = server.address()
      await new Promise((resolve) => server.close(resolve))
      if (address === null || typeof address === "string") throw new Error("a TCP server has a port")
      return address.port
    })
  )
}

const runPage = async (blocks: ReadonlyArray<CommandBlock>): Promise<void> => {
  await using cleanup = new AsyncDisposableStack()
  const ports = await freePorts(3)
  const [nodePort, httpPort, opsPort] = ports
  const http = `http://127.0.0.1:${httpPort}`
  const folder = new TempFolder(cleanup)
  const here = (text: string) =>
    text
      .replaceAll(/(127\.0\.0\.1[: ])761([012])/g, (_match, host, index) => `${host}${ports[Number(index)]}`)
      .replaceAll(/(?<=\s|\$PWD\/)(edge\.yaml|\w+\.token)\b/g, (_match, name) => join(folder.path, name))
      .replaceAll("$PWD//", "/")
  const shell = new DocShell(cleanup, { IOP_EDGE_URL: http })
  const nodesAreRoutable = () =>
    eventually("the nodes to be routable", async () => {
      const { nodes } = (await (await fetch(`${http}/admin/v1/nodes`)).json()) as {
        nodes: ReadonlyArray<{ state: string }>
      }
      return nodes.length > 0 && nodes.every(({ state }) => state === "routable")
    })
  let edge: BackgroundCommand | undefined

  for (const { place, screen, text } of blocks) {
    try {
      if (startsEdge(text)) {
        await edge?.stop()
        const flags = `--node-port ${nodePort} --http-port ${httpPort} --ops-port ${opsPort}`
        const started = await shell.start(cleanup, `${here(text)} ${flags}`)
        edge = started
        await eventually(
          `${text} to be ready`,
          async () => (await fetch(`http://127.0.0.1:${opsPort}/readyz`)).ok
        ).catch((error) => {
          throw new Error(`${error instanceof Error ? error.message : error}\n${started.output()}`)
        })
        if (bringsNodes(text)) await nodesAreRoutable()
        await eventually(`the screen of: ${text}`, () => missingLines(screen, started.output()).length === 0)
      } else if (startsNode(text)) {
        await shell.start(cleanup, here(text))
        await nodesAreRoutable()
      } else {
        const output = await shell.run(here(text))
        assert.deepStrictEqual(missingLines(screen, output), [], output)
      }
    } catch (error) {
      throw new Error(`${place}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }
  await edge?.stop()
}

describe("the commands in", () => {
  const pages = docPages().filter(({ blocks }) => blocks.length > 0)

  it("the documentation are all found", () => {
    const paths = pages.map(({ path }) => path)
    assert.includeMembers(paths, [
      "README.md",
      "CONTRIBUTING.md",
      "docs/api.md",
      "docs/operations.md",
      "docs/security.md",
      "packages/node-sdk/README.md"
    ])
  })

  for (const { path, blocks } of pages) {
    const run = blocks.filter((block) => block.notRun === undefined && !runByCi(block))
    const left = blocks.flatMap(({ notRun, place }) => (notRun === undefined ? [] : [`${place}: ${notRun}`]))
    if (run.length > 0) {
      // A page on how to look at a running edge does not say again how to start one.
      const start: CommandBlock = {
        place: path,
        text: "npx -y pnpm@12 --filter edge start",
        screen: [],
        notRun: undefined
      }
      const needsEdge = !run.some(({ text }) => startsEdge(text))
      it(`${path} work`, { timeout: 300_000 }, () => runPage(needsEdge ? [start, ...run] : run))
    }
    if (left.length > 0) {
      it(`${path} are not run by a test for a reason that a reader can see`, () => {
        for (const reason of left) assert.match(reason, /: \S.{10,}$/)
      })
    }
  }
})
