// The node of this folder as a process, run by Debian's Python.
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { ChildProcess } from "../../../apps/edge/e2e/harness/ChildProcess.ts"
import type { Address } from "../../../apps/edge/e2e/harness/RawHttp.ts"

export const folder = fileURLToPath(new URL("..", import.meta.url))

/** Debian's own, whatever else `python3` means on this machine: only this one sees the package python3-protobuf. */
export const python = "/usr/bin/python3"

/** Fails with what to install. */
export const requirePython = (): void => {
  const library = spawnSync(python, ["-c", "import google.protobuf"])
  const compiler = spawnSync("protoc", ["--version"])
  if (library.status === 0 && compiler.status === 0) return
  throw new Error(
    `the Python node needs ${python} with its protobuf library, and protoc; install them with: sudo apt install python3-protobuf protobuf-compiler`
  )
}

export class PythonNode extends ChildProcess {
  constructor(
    cleanup: AsyncDisposableStack,
    options: { readonly edge: Address; readonly token: string; readonly args?: ReadonlyArray<string> }
  ) {
    super(cleanup, {
      name: "the Python node",
      executable: python,
      args: ["node.py", "--edge", `${options.edge.host}:${options.edge.port}`, ...(options.args ?? [])],
      env: { IOP_NODE_TOKEN: options.token },
      cwd: folder
    })
  }

  /** Waits for a line of its log. */
  async said(pattern: RegExp): Promise<string> {
    return this.line(`a line ${pattern}`, (line) => pattern.test(line) && line)
  }

  /** Lines of its log so far that match. */
  lines(pattern: RegExp): ReadonlyArray<string> {
    return this.stderr.filter((line) => pattern.test(line))
  }
}
