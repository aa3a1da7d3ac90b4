// Where commands write. What is printed is for a person or a pipe; a pipe that closes ends the command quietly.

/** Whether stdout is gone; nothing more reaches anybody. */
let closed = false

let onClosed = () => {}

/** Whether the reader of stdout has left. */
export const stdoutClosed = (): boolean => closed

/** What happens when the reader of stdout leaves (`| head -1`); once. */
export const whenStdoutCloses = (handler: () => void): void => {
  onClosed = handler
}

/** Begins to watch: without it a reader that leaves is an exception. */
export const watchStdout = (): void => {
  process.stdout.on("error", () => {
    if (closed) return
    closed = true
    onClosed()
  })
  // Nothing can be said about a stderr that is gone.
  process.stderr.on("error", () => {})
}

/** Writes to stdout. Resolves when the pipe has taken it: a reader that stops makes the writer wait. */
export const write = (text: string): Promise<void> =>
  new Promise((resolve) => {
    if (closed || text === "") resolve()
    else if (process.stdout.write(text)) resolve()
    else {
      const go = () => {
        process.stdout.off("drain", go)
        process.stdout.off("error", go)
        resolve()
      }
      process.stdout.once("drain", go)
      process.stdout.once("error", go)
    }
  })

/** Writes a line to stdout. */
export const writeLine = (text: string): Promise<void> => write(`${text}\n`)

/** Writes a value as JSON, indented, and a line end. */
export const writeJson = (value: unknown): Promise<void> => writeLine(JSON.stringify(value, null, 2))
