// A shell in which the commands of a page of the documentation run one after the other, as in one terminal: variables
// and aliases stay. Commands that go on, such as an edge, run in the background and end with the shell.
import { type ChildProcess as Child, spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { workspace } from "./docPages.ts"
import { TempFolder } from "./TempFolder.ts"
import { eventually } from "./waiting.ts"

/** A command may install packages first. */
const BOUND_MS = 120_000

/** What people type when they are asked for something. */
const TYPED = "hello\n"

export interface BackgroundCommand {
  /** Everything that it has printed so far. */
  readonly output: () => string
  /** Stops it as Ctrl-C or a supervisor does, and waits until all its processes have gone. */
  readonly stop: () => Promise<void>
}

export class DocShell {
  readonly #shell: Child
  readonly #folder: TempFolder
  readonly #input: string
  #commands = 0
  #ended = false

  constructor(cleanup: AsyncDisposableStack, env: Readonly<Record<string, string>>) {
    this.#folder = new TempFolder(cleanup)
    this.#input = this.#folder.write("input", TYPED)
    // The machine's own programs, without those that the workspace has put before them for this test.
    const path = (process.env.PATH ?? "")
      .split(delimiter)
      .filter((folder) => !folder.includes("node_modules"))
    this.#shell = spawn("bash", ["--posix"], {
      cwd: workspace,
      env: { ...env, PATH: path.join(delimiter), HOME: process.env.HOME, NO_COLOR: "1" },
      // Without a terminal, so that job control gives each command a process group and takes nobody's terminal.
      detached: true,
      stdio: ["pipe", "ignore", "ignore"]
    })
    this.#shell.once("close", () => {
      this.#ended = true
    })
    this.#shell.stdin?.on("error", () => undefined)
    cleanup.defer(() => {
      this.#shell.kill("SIGKILL")
    })
    this.#type("set -e -m")
  }

  /** Runs commands to their end and returns what they printed. Throws when one of them fails. */
  async run(commands: string): Promise<string> {
    const { script, file } = this.#next(commands)
    this.#type(`. ${script} <${this.#input} >${file("out")} 2>&1; echo done >${file("done")}`)
    await this.#until(
      commands,
      () => existsSync(file("done")),
      () => read(file("out"))
    )
    return read(file("out"))
  }

  /** Starts a command that goes on. */
  async start(cleanup: AsyncDisposableStack, command: string): Promise<BackgroundCommand> {
    const { script, file } = this.#next(command)
    const output = () => read(file("out"))
    this.#type(`. ${script} </dev/null >${file("out")} 2>&1 &\necho $! >${file("pid")}`)
    await this.#until(command, () => read(file("pid")).endsWith("\n"), output)
    const group = -Number(read(file("pid")))
    const signal = (name: NodeJS.Signals | 0): boolean => {
      try {
        return process.kill(group, name)
      } catch {
        return false
      }
    }
    cleanup.defer(() => {
      signal("SIGKILL")
    })
    return {
      output,
      stop: async () => {
        signal("SIGTERM")
        await eventually(`the end of: ${command}`, () => !signal(0))
      }
    }
  }

  #next(commands: string) {
    this.#commands += 1
    const name = `${this.#commands}`
    return {
      script: this.#folder.write(`${name}.sh`, `${commands}\n`),
      file: (kind: string) => join(this.#folder.path, `${name}.${kind}`)
    }
  }

  #type(line: string): void {
    this.#shell.stdin?.write(`${line}\n`)
  }

  async #until(commands: string, holds: () => boolean, output: () => string): Promise<void> {
    try {
      await eventually(
        `the end of: ${commands}`,
        () => {
          const ended = this.#ended
          return holds() ? "good" : ended ? "failed" : undefined
        },
        BOUND_MS
      ).then((how) => {
        if (how === "failed") throw new Error(`failed: ${commands}`)
      })
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : String(error)}\n--- output\n${output()}`)
    }
  }
}

const read = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "")
