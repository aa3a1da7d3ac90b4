// The real edge and the real fake node as processes, for judging them, and their end with the test.
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Address } from "../src/trial/Address.ts"
import { parseAddress } from "../src/trial/Address.ts"

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** The fake node's program. */
export const MOCK_NODE = file("../../../apps/mock-node/src/main.ts")
const EDGE = file("../../../apps/edge/src/main.ts")

export const TOKEN = "conformance-token-0123456789abcdef"
export const SECOND_TOKEN = "conformance-second-token-0123456789"
export const ADMIN_KEY = "conformance-key-0123456789abcdef"

/** How long a process may take to start, in milliseconds. */
const START_MS = 60_000

export interface RunningEdge {
  readonly nodes: Address
  readonly http: string
}

const adapters = [{ name: "mock", type: "mock", slots: 8, targets: ["echo"] }]

/** Short clocks, so that the rules that are about time are judged in seconds. */
const config = {
  edge: { id: "conformance-edge", drain_timeout: "1s" },
  listen: {
    nodes: { host: "127.0.0.1", port: 0 },
    http: { host: "127.0.0.1", port: 0 },
    ops: { host: "127.0.0.1", port: 0 }
  },
  api_keys: [{ name: "conformance", key: ADMIN_KEY }],
  nodes: [
    { id: "one", alias: "first", token: TOKEN, adapters },
    { id: "two", alias: "second", token: SECOND_TOKEN, adapters }
  ],
  link: { register_timeout: "2s", heartbeat_interval: "500ms", takeover_probe: "700ms" },
  runs: { cancel_timeout: "700ms", circuit: { failures: 1000 } },
  log: { format: "json", level: "debug" }
}

/** Starts an edge and waits until it listens. */
export const startEdge = async (cleanup: AsyncDisposableStack): Promise<RunningEdge> => {
  const folder = mkdtempSync(join(tmpdir(), "iop-conformance-"))
  cleanup.defer(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, "edge.yaml")
  writeFileSync(path, JSON.stringify(config))
  const child = start(cleanup, [EDGE, "serve", "--config", path], {})
  const nodes = await lineOf(child, /^\s+nodes dial\s+(\S+:\d+)$/m)
  const http = await lineOf(child, /^\s+http\s+(?:http:\/\/)?(\S+:\d+)$/m)
  const address = parseAddress(nodes)
  if (address === undefined) throw new Error(`no address: ${nodes}`)
  return { nodes: address, http: `http://${http}` }
}

interface Started {
  readonly child: ChildProcess
  readonly output: () => string
}

const start = (
  cleanup: AsyncDisposableStack,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>
): Started => {
  const { HOME = "", PATH = "" } = process.env
  const child = spawn(process.execPath, [...args], {
    env: { HOME, PATH, NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text
    })
  }
  cleanup.defer(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once("close", resolve))
    child.kill("SIGKILL")
    await gone
  })
  return { child, output: () => output }
}

/** What the pattern finds in the output, now or later. */
const lineOf = ({ child, output }: Started, pattern: RegExp): Promise<string> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => done(`no line like ${pattern} within ${START_MS} ms`), START_MS)
    const done = (why?: string) => {
      clearTimeout(timer)
      child.stdout?.off("data", look)
      child.off("close", ended)
      if (why !== undefined) reject(new Error(`${why}:\n${output()}`))
    }
    const look = () => {
      const found = pattern.exec(output())?.[1]
      if (found === undefined) return
      done()
      resolve(found)
    }
    const ended = () => done("the process ended")
    child.stdout?.on("data", look)
    child.once("close", ended)
    look()
  })
