// The fake nodes of the local profile: real child processes that dial in over real TCP and end with the edge.
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { getCompileCacheDir } from "node:module"
import { fileURLToPath } from "node:url"
import { Effect, type Scope } from "effect"
import type { BoundAddress } from "./EdgeListeners.ts"
import type { LocalNode } from "./localProfile.ts"

/** A child that has not ended this long after it was asked to is killed. Milliseconds. */
const KILL_AFTER_MS = 500
/** What is kept of a child's last words, in characters. */
const LAST_WORDS = 500

export interface FakeNodes {
  /** Starts a process for each node. Each that ends too early is told once, with its last words. */
  readonly start: (nodes: ReadonlyArray<LocalNode>, edge: BoundAddress) => Effect.Effect<void>
}

/** The children end when the scope closes; make it before the edge, so that they outlive its Goodbye. */
export const makeFakeNodes = (
  onDeath: (id: string, how: string) => void
): Effect.Effect<FakeNodes, never, Scope.Scope> =>
  Effect.gen(function* () {
    const children = new Set<ChildProcess>()
    const compileCache = getCompileCacheDir()
    let stopping = false
    yield* Effect.addFinalizer(() =>
      Effect.callback<void>((resume) => {
        stopping = true
        if (children.size === 0) {
          resume(Effect.void)
          return
        }
        const kill = setTimeout(() => {
          for (const child of children) child.kill("SIGKILL")
        }, KILL_AFTER_MS)
        for (const child of children) {
          child.once("close", () => {
            children.delete(child)
            if (children.size > 0) return
            clearTimeout(kill)
            resume(Effect.void)
          })
          child.kill("SIGTERM")
        }
      })
    )
    const startOne = (node: LocalNode, edge: BoundAddress) => {
      const address = `${edge.host}:${edge.port}`
      const args = ["--import", END_WITH_PARENT, program(), "--edge", address, "--name", node.id]
      const child = spawn(process.execPath, args, {
        stdio: ["pipe", "ignore", "pipe"],
        // The token is in the environment: every process of the machine can read a command line.
        env: {
          IOP_NODE_TOKEN: node.token,
          ...(process.env.PATH === undefined ? {} : { PATH: process.env.PATH }),
          ...(compileCache === undefined ? {} : { NODE_COMPILE_CACHE: compileCache })
        }
      })
      children.add(child)
      let words = ""
      child.stderr.on("data", (chunk: Buffer) => {
        words = (words + chunk.toString("utf8")).slice(-LAST_WORDS)
      })
      child.stdin.on("error", () => {})
      const ended = (how: string) => {
        children.delete(child)
        if (!stopping) onDeath(node.id, how)
      }
      child.once("error", (error) => ended(`could not be started: ${error.message}`))
      child.once("exit", (code, signal) => {
        // Whoever was killed had no time for last words.
        const last = signal === null ? (words.trim().split("\n").at(-1) ?? "") : ""
        const how = signal === null ? `ended with code ${code}` : `was killed by ${signal}`
        ended(last === "" ? how : `${how}: ${last}`)
      })
    }
    return {
      start: (nodes, edge) =>
        Effect.sync(() => {
          for (const node of nodes) startOne(node, edge)
        })
    }
  })

/**
 * Runs in the child before its program: however this process ends, the system closes its end of the child's stdin, and
 * the child goes too. The fake node itself knows nothing of it.
 */
const END_WITH_PARENT = `data:text/javascript,${encodeURIComponent(
  "process.stdin.on('end',()=>process.exit(0)).on('error',()=>process.exit(0)).resume()"
)}`

/** The fake node's program: in a bundle beside this file, in the sources a package of its own. */
const program = (): string => {
  const bundled = fileURLToPath(new URL("mock-node.js", import.meta.url))
  return existsSync(bundled) ? bundled : fileURLToPath(import.meta.resolve("mock-node/main"))
}
