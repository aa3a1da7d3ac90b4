// LK9: a real fake node whose edge is not there yet, in the ways in which it can be missing.
import { createServer, type Server } from "node:net"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { MockNode } from "./harness/MockNode.ts"
import { eventually, within } from "./harness/waiting.ts"

const host = "127.0.0.1"

const listen = (server: Server, port: number): Promise<number> =>
  within(
    "a port",
    new Promise<number>((resolve, reject) => {
      server.once("error", reject)
      server.listen(port, host, () => {
        const address = server.address()
        resolve(typeof address === "object" && address !== null ? address.port : 0)
      })
    })
  )

/** A port on which nothing listens. */
const closedPort = async (): Promise<number> => {
  const server = createServer()
  const port = await listen(server, 0)
  await new Promise((resolve) => server.close(resolve))
  return port
}

const nextAttempt = /next attempt in ([\d.]+) s/

describe("a node whose edge is not there yet", () => {
  let cleanup: AsyncDisposableStack
  beforeEach(() => {
    cleanup = new AsyncDisposableStack()
  })
  afterEach(() => cleanup.disposeAsync())

  const start = (edge: { readonly host: string; readonly port: number }) =>
    new MockNode(cleanup, { edge, token: tokenOf("tower") })
  const reasons = (node: MockNode) =>
    [...node.stdout, ...node.stderr].filter((line) => nextAttempt.test(line))

  it("LK9 says once that the port is closed, tries on, and registers as soon as the edge is there", async () => {
    const port = await closedPort()
    const node = start({ host, port })
    const line = await node.line("why there is no link", (text) =>
      nextAttempt.test(text) ? text : undefined
    )
    expect(line).toContain(`${host}:${port}`)
    expect(line).toMatch(/refused|nothing listens/i)
    expect(Number(nextAttempt.exec(line)?.[1])).toBeLessThanOrEqual(1)
    const edge = await EdgeProcess.start(cleanup, {
      nodes: [mockNodeConfig("tower")],
      listen: { nodes: { port } }
    })
    await edge.admin.untilNode("tower", "routable", 40_000)
    expect(node.exit).toBeUndefined()
    expect(reasons(node)).toEqual([line])
    const stream = await edge.admin.stream({ adapter: "mock", target: "echo", prompt: "at last" })
    await stream.finish()
    expect(stream.text).toBe("at last")
  })

  it("LK9 dials again and again, and logs a reason once however often it comes", async () => {
    let dials = 0
    const server = createServer((socket) => {
      dials += 1
      socket.on("error", () => undefined)
      socket.resetAndDestroy()
    })
    cleanup.defer(() => void server.close())
    const port = await listen(server, 0)
    const node = start({ host, port })
    await eventually("the fourth dial", () => dials >= 4, 40_000)
    expect(node.exit).toBeUndefined()
    const kinds = reasons(node).map((line) => /"?kind"?[=:] ?"?(\w+)/.exec(line)?.[1])
    expect(kinds.length).toBeGreaterThan(0)
    expect(new Set(kinds).size).toBe(kinds.length)
  })

  it("LK9 says in words that the name does not resolve, and goes on", async () => {
    const node = start({ host: "no-such-edge.invalid", port: 7610 })
    const line = await node.line("why there is no link", (text) =>
      nextAttempt.test(text) ? text : undefined
    )
    expect(line).toContain("no-such-edge.invalid")
    expect(node.exit).toBeUndefined()
    expect((await node.stop("SIGTERM")).code).toBe(0)
  })
})
