// One command of the edge's CLI, from its start to its end.
import { fileURLToPath } from "node:url"
import { ChildProcess, type Exit } from "./ChildProcess.ts"

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url))

/** The arguments with which the edge's launcher starts Node. */
export const edgeArgs = (args: ReadonlyArray<string>): ReadonlyArray<string> => [
  "--max-semi-space-size=4",
  MAIN,
  ...args
]

export interface CommandResult extends Exit {
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBytes: Buffer
  readonly ms: number
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Written to stdin, which is closed after it; without it there is no stdin. */
  readonly input?: string | Uint8Array
  readonly boundMs?: number
}

/** Starts a command that goes on. */
export const startCommand = (
  cleanup: AsyncDisposableStack,
  args: ReadonlyArray<string>,
  options: CommandOptions = {}
): ChildProcess =>
  new ChildProcess(cleanup, {
    name: `edge ${args.join(" ")}`,
    args: edgeArgs(args),
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    input: options.input !== undefined
  })

/** Runs a command to its end. */
export const runCommand = async (
  args: ReadonlyArray<string>,
  options: CommandOptions = {}
): Promise<CommandResult> => {
  await using cleanup = new AsyncDisposableStack()
  const start = performance.now()
  const child = startCommand(cleanup, args, options)
  if (options.input !== undefined) {
    child.write(options.input)
    child.endInput()
  }
  const exit = await child.end(options.boundMs)
  return {
    ...exit,
    stdout: child.stdoutBytes.toString("utf8"),
    stderr: child.stderr.join("\n"),
    stdoutBytes: child.stdoutBytes,
    ms: performance.now() - start
  }
}
