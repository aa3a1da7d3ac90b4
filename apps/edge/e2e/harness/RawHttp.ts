// HTTP/1.1 by hand over a socket, for what a well-behaved client can't do: send half a request, several at once, stop
// reading, hang up in the middle.
import { connect, type Socket } from "node:net"
import { eventually, within } from "./waiting.ts"

export interface RawHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

export interface Address {
  readonly host: string
  readonly port: number
}

export class RawHttp {
  readonly socket: Socket
  /** Resolves when the edge has ended its half of the connection or all of it. */
  readonly closed: Promise<void>
  #buffer = Buffer.alloc(0)
  #ended = false
  readonly #chunkSinks: Array<() => void> = []

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on("data", (chunk: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk])
      for (const wake of this.#chunkSinks.splice(0)) wake()
    })
    socket.on("error", () => undefined)
    this.closed = new Promise((resolve) => {
      const end = () => {
        this.#ended = true
        for (const wake of this.#chunkSinks.splice(0)) wake()
        resolve()
      }
      // This side stays half open, so that an end alone brings no close.
      socket.once("end", end)
      socket.once("close", end)
    })
  }

  static async open(cleanup: AsyncDisposableStack, address: Address): Promise<RawHttp> {
    const socket = connect({ ...address, noDelay: true, allowHalfOpen: true })
    cleanup.defer(() => {
      socket.destroy()
    })
    await within(
      `a connection to ${address.host}:${address.port}`,
      new Promise<void>((resolve, reject) => {
        socket.once("connect", resolve)
        socket.once("error", reject)
      })
    )
    return new RawHttp(socket)
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes)
  }

  /** A whole request with a JSON body, or none. */
  request(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {}
  ): void {
    const text = body === undefined ? "" : JSON.stringify(body)
    const lines = [
      `${method} ${path} HTTP/1.1`,
      `Host: 127.0.0.1:${this.socket.remotePort}`,
      ...(body === undefined
        ? []
        : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(text)}`]),
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    ]
    this.socket.write(`${lines.join("\r\n")}\r\n\r\n${text}`)
  }

  /** Status and headers of the next response. */
  async head(boundMs?: number): Promise<RawHead> {
    const end = await eventually(
      "the head of a response",
      async () => {
        const at = this.#buffer.indexOf("\r\n\r\n")
        if (at === -1 && this.#ended)
          throw new Error(`the connection ended after ${this.#buffer.length} bytes`)
        return at === -1 ? undefined : at + 4
      },
      boundMs
    )
    const [first = "", ...lines] = this.#buffer.subarray(0, end).toString("latin1").trimEnd().split("\r\n")
    this.#buffer = this.#buffer.subarray(end)
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const colon = line.indexOf(":")
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
    }
    return { status: Number(first.split(" ")[1]), headers }
  }

  /** The body of a response whose head was read: by its length, or in chunks. */
  async body(head: RawHead, boundMs?: number): Promise<string> {
    const length = head.headers["content-length"]
    if (length !== undefined) {
      const bytes = await this.#take(Number(length), boundMs)
      return bytes.toString("utf8")
    }
    const chunks: Array<Uint8Array> = []
    while (true) {
      const chunk = await this.chunk(boundMs)
      if (chunk === undefined) return Buffer.concat(chunks).toString("utf8")
      chunks.push(chunk)
    }
  }

  /** The next chunk of a chunked body; undefined at its proper end. Fails when the connection ends before. */
  async chunk(boundMs?: number): Promise<Uint8Array | undefined> {
    const lineEnd = await this.#find("\r\n", boundMs)
    const size = Number.parseInt(this.#buffer.subarray(0, lineEnd).toString("latin1"), 16)
    this.#buffer = this.#buffer.subarray(lineEnd + 2)
    const bytes = await this.#take(size, boundMs)
    await this.#take(2, boundMs)
    return size === 0 ? undefined : bytes
  }

  async #find(text: string, boundMs?: number): Promise<number> {
    while (true) {
      const at = this.#buffer.indexOf(text)
      if (at !== -1) return at
      await this.#more(boundMs)
    }
  }

  async #take(count: number, boundMs?: number): Promise<Buffer> {
    while (this.#buffer.length < count) await this.#more(boundMs)
    const taken = this.#buffer.subarray(0, count)
    this.#buffer = this.#buffer.subarray(count)
    return taken
  }

  #more(boundMs?: number): Promise<void> {
    if (this.#ended) return Promise.reject(new Error("the connection ended inside a response"))
    return within(
      "more bytes of a response",
      new Promise<void>((resolve) => this.#chunkSinks.push(resolve)),
      boundMs
    )
  }
}
