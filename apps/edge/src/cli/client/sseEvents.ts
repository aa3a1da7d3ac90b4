// Reads server-sent events from chunks of bytes. Only `event` and `data` matter here; comments are skipped.

export interface SseEvent {
  readonly event: string
  readonly data: string
}

/** More than this without an event's end is not an edge. Embeddings of many texts are the largest events. */
const MAX_EVENT = 64 * 1024 * 1024

export class SseReader {
  readonly #decoder = new TextDecoder()
  #rest = ""
  #event = ""
  #data: Array<string> = []

  /** The events that the chunk completes. Throws when one grows without end. */
  push(chunk: Uint8Array): Array<SseEvent> {
    const events: Array<SseEvent> = []
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true })
    let start = 0
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      const line = text.slice(start, end).replace(/\r$/, "")
      start = end + 1
      if (line === "") {
        if (this.#data.length > 0)
          events.push({ event: this.#event || "message", data: this.#data.join("\n") })
        this.#event = ""
        this.#data = []
      } else if (line.startsWith("data:")) this.#data.push(line.slice(5).replace(/^ /, ""))
      else if (line.startsWith("event:")) this.#event = line.slice(6).trim()
    }
    this.#rest = text.slice(start)
    if (this.#rest.length > MAX_EVENT) throw new Error("an event without end")
    return events
  }
}
