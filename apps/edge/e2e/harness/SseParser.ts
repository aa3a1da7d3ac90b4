// Server-sent events from bytes, as the standard describes them and no more: events with their id, name and data, and
// how many comments there were.

export interface SseEvent {
  readonly id: string | undefined
  /** `message` when the event has no name. */
  readonly name: string
  readonly data: string
}

export class SseParser {
  readonly events: Array<SseEvent> = []
  comments = 0
  readonly #decoder = new TextDecoder("utf-8", { fatal: true })
  #rest = ""
  #id: string | undefined
  #name = ""
  #data: Array<string> = []

  /** Appends to `events` what the bytes complete. */
  push(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r/)
    this.#rest = lines.pop() ?? ""
    for (const line of lines) this.#line(line)
  }

  #line(line: string): void {
    if (line === "") {
      if (this.#data.length > 0) {
        this.events.push({ id: this.#id, name: this.#name || "message", data: this.#data.join("\n") })
      }
      this.#name = ""
      this.#data = []
      return
    }
    if (line.startsWith(":")) {
      this.comments += 1
      return
    }
    const colon = line.indexOf(":")
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "")
    if (field === "data") this.#data.push(value)
    else if (field === "event") this.#name = value
    else if (field === "id") this.#id = value
  }
}
