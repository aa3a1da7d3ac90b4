// A child process of a test: its output line by line, waiting for lines, signals, and its end. Whatever happens to the
// test, its cleanup kills the process.
import { type ChildProcess as Child, spawn } from "node:child_process"
import { eventually, within } from "./waiting.ts"

export interface ChildOptions {
  /** Shown in failures. */
  readonly name: string
  /** The program; this very Node executable if it is not given. */
  readonly executable?: string
  readonly args: ReadonlyArray<string>
  /** Added to a small environment that has nothing of the test's own secrets or settings. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Whether stdin is a pipe that stays open until `endInput`; otherwise there is none. */
  readonly input?: boolean
}

export interface Exit {
  /** Undefined when a signal ended it. */
  readonly code: number | undefined
  readonly signal: NodeJS.Signals | undefined
}

/** Lines that a failure message repeats. */
const TAIL_LINES = 30

export class ChildProcess {
  readonly name: string
  /** Complete lines. */
  readonly stdout: Array<string> = []
  readonly stderr: Array<string> = []
  readonly exited: Promise<Exit>
  readonly #child: Child
  readonly #stdoutChunks: Array<Buffer> = []
  #exit: Exit | undefined

  constructor(cleanup: AsyncDisposableStack, options: ChildOptions) {
    this.name = options.name
    const { PATH, HOME, TMPDIR } = process.env
    this.#child = spawn(options.executable ?? process.execPath, [...options.args], {
      cwd: options.cwd,
      env: {
        ...(PATH === undefined ? {} : { PATH }),
        ...(HOME === undefined ? {} : { HOME }),
        ...(TMPDIR === undefined ? {} : { TMPDIR }),
        NO_COLOR: "1",
        ...options.env
      },
      stdio: [options.input === true ? "pipe" : "ignore", "pipe", "pipe"]
    })
    this.#child.stdin?.on("error", () => undefined)
    collectLines(this.#child.stdout, this.stdout, this.#stdoutChunks)
    collectLines(this.#child.stderr, this.stderr)
    this.exited = new Promise((resolve, reject) => {
      this.#child.once("error", reject)
      // `close`, not `exit`: all output has been read by then.
      this.#child.once("close", (code, signal) => {
        this.#exit = { code: code ?? undefined, signal: signal ?? undefined }
        resolve(this.#exit)
      })
    })
    this.exited.catch(() => undefined)
    cleanup.defer(async () => {
      if (this.#exit !== undefined) return
      this.#child.kill("SIGKILL")
      // A process that a test has stopped takes no other signal.
      this.#child.kill("SIGCONT")
      await this.exited
    })
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`${this.name} did not start`)
    return this.#child.pid
  }

  get exit(): Exit | undefined {
    return this.#exit
  }

  /** Everything written to stdout, byte for byte. */
  get stdoutBytes(): Buffer {
    return Buffer.concat(this.#stdoutChunks)
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  write(text: string | Uint8Array): void {
    this.#child.stdin?.write(text)
  }

  endInput(): void {
    this.#child.stdin?.end()
  }

  /** Closes this end of a pipe of the child, as a reader that leaves does. */
  closeOutput(stream: "stdout" | "stderr" = "stdout"): void {
    this.#child[stream]?.destroy()
  }

  /** Stops to take what the child writes, as a reader that hangs does; its pipe fills up. */
  pauseOutput(stream: "stdout" | "stderr"): void {
    this.#child[stream]?.pause()
  }

  /** Takes the output again. */
  resumeOutput(stream: "stdout" | "stderr"): void {
    this.#child[stream]?.resume()
  }

  /** Sends the signal and waits for the end. */
  async stop(signal: NodeJS.Signals, boundMs?: number): Promise<Exit & { readonly ms: number }> {
    const start = performance.now()
    this.#child.kill(signal)
    const exit = await this.end(boundMs)
    return { ...exit, ms: performance.now() - start }
  }

  async kill(): Promise<void> {
    await this.stop("SIGKILL")
  }

  async end(boundMs?: number): Promise<Exit> {
    try {
      return await within(`the end of ${this.name}`, this.exited, boundMs)
    } catch (error) {
      throw this.#withTail(error)
    }
  }

  /** The first line of stdout or stderr, those that have passed included, for which `find` gives something. */
  async line<A>(what: string, find: (line: string) => A | undefined | false, boundMs?: number): Promise<A> {
    const look = () => {
      for (const line of [...this.stdout, ...this.stderr]) {
        const found = find(line)
        if (found !== undefined && found !== false) return found
      }
      return undefined
    }
    try {
      return await eventually(
        `${this.name}: ${what}`,
        () => {
          const found = look()
          if (found === undefined && this.#exit !== undefined) {
            // Nothing more will come; looking on would only hide the reason.
            return { gone: true as const }
          }
          return found === undefined ? undefined : { gone: false as const, found }
        },
        boundMs
      ).then((result) => {
        if (result.gone)
          throw new Error(`${this.name} ended with ${JSON.stringify(this.#exit)} before: ${what}`)
        return result.found
      })
    } catch (error) {
      throw this.#withTail(error)
    }
  }

  /** The last lines of output, for failure messages. */
  get tail(): string {
    return [...this.stdout.slice(-TAIL_LINES), ...this.stderr.slice(-TAIL_LINES)].join("\n")
  }

  #withTail(error: unknown): Error {
    const message = error instanceof Error ? error.message : String(error)
    return new Error(`${message}\n--- last output of ${this.name}\n${this.tail}`)
  }
}

const collectLines = (
  stream: NodeJS.ReadableStream | null,
  lines: Array<string>,
  chunks?: Array<Buffer>
): void => {
  if (stream === null) return
  const decoder = new TextDecoder()
  let rest = ""
  stream.on("data", (chunk: Buffer) => {
    chunks?.push(chunk)
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n")
    rest = parts.pop() ?? ""
    lines.push(...parts)
  })
  stream.on("end", () => {
    if (rest !== "") lines.push(rest)
  })
}
