// Where log lines go. A log that nobody reads must not hurt what is logged: a closed pipe is let go, a full one gets no
// more than a bounded number of bytes, a full disk costs the lines of that time and no more.

/** The part of a stream that is used; process.stderr is one. */
export interface LogStream {
  readonly writableLength: number
  readonly destroyed: boolean
  write(text: string): boolean
  on(event: "error", listener: (error: Error) => void): unknown
}

export interface LogSink {
  /** Writes a line, or counts it as left out. Never throws and never waits. */
  readonly write: (line: string) => void
}

/** Bytes that may wait in this process for a reader of the log. */
export const MAX_WAITING_BYTES = 1024 * 1024

/** Streams that already have a listener: without one, a closed pipe ends the process. */
const guarded = new WeakSet<LogStream>()

/** A sink on a stream. `leftOut` makes the line that tells how many lines were left out before it. */
export const makeLogSink = (stream: LogStream, leftOut: (lines: number) => string): LogSink => {
  if (!guarded.has(stream)) {
    guarded.add(stream)
    // There is nowhere to tell that the log is gone.
    stream.on("error", () => undefined)
  }
  let missed = 0
  return {
    write: (line) => {
      if (stream.destroyed || stream.writableLength > MAX_WAITING_BYTES) {
        missed += 1
        return
      }
      const notice = missed === 0 ? "" : `${leftOut(missed)}\n`
      try {
        stream.write(`${notice}${line}\n`)
        missed = 0
      } catch {
        missed += 1
      }
    }
  }
}
