// A TCP proxy over loopback that does to a link what bad networks do: delays it, cuts it into pieces, loses one
// direction or both, resets it, freezes it, moves it to another address.
import { connect, createServer, type Server, type Socket } from "node:net"
import type { Address } from "./RawHttp.ts"
import { within } from "./waiting.ts"

/** `up`: from whoever dials to the target. */
export type Direction = "up" | "down"

/** What happens to the bytes of one direction. */
export interface Weather {
  /** Bytes of one write; 0: as they come. */
  slice: number
  /** Milliseconds by which every piece is late. */
  delayMs: number
  /** Whether bytes vanish without a trace. */
  lost: boolean
  /** Whether bytes wait; they go on when it thaws. */
  frozen: boolean
}

interface Flow {
  readonly from: Socket
  readonly to: Socket
  readonly direction: Direction
  readonly held: Array<Buffer>
  /** Delayed pieces keep their order. */
  tail: Promise<void>
  /** Its path leads nowhere, whatever the weather: see `blackhole`. */
  dead: boolean
}

export class ChaosProxy {
  readonly weather: Readonly<Record<Direction, Weather>> = { up: calm(), down: calm() }
  /** Connections that were made so far. */
  connections = 0
  /** Connections that were refused so far; see `refuses`. */
  refused = 0
  /** Whether new connections are reset, as if the target were not there. */
  refuses = false
  /** The address from which the target is dialled; undefined: the kernel's choice. */
  source: string | undefined
  readonly #target: Address
  readonly #flows = new Set<Flow>()
  readonly #servers: Array<Server> = []
  #address: Address | undefined

  private constructor(target: Address) {
    this.#target = target
  }

  static async open(cleanup: AsyncDisposableStack, target: Address): Promise<ChaosProxy> {
    const proxy = new ChaosProxy(target)
    cleanup.defer(() => proxy.#close())
    await proxy.move()
    return proxy
  }

  /** Where to dial. */
  get address(): Address {
    if (this.#address === undefined) throw new Error("the proxy is closed")
    return this.#address
  }

  /** Open connections. */
  get open(): number {
    return this.#flows.size / 2
  }

  /** Another port: the old one takes no new connection, open ones stay as they are. */
  async move(): Promise<void> {
    for (const server of this.#servers) server.close()
    const server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => this.#accept(near))
    this.#servers.push(server)
    await within(
      "the proxy's port",
      new Promise<void>((resolve, reject) => {
        server.once("error", reject)
        server.listen(0, "127.0.0.1", () => resolve())
      })
    )
    const address = server.address()
    if (address === null || typeof address === "string") throw new Error("the proxy has no port")
    this.#address = { host: "127.0.0.1", port: address.port }
  }

  /** Loses what goes in these directions, from now on, without telling anybody. */
  lose(...directions: ReadonlyArray<Direction>): void {
    for (const direction of directions) this.weather[direction].lost = true
  }

  /** As `lose`, for the connections that are open now and for ever: later ones take another path. */
  blackhole(...directions: ReadonlyArray<Direction>): void {
    for (const flow of this.#flows) if (directions.includes(flow.direction)) flow.dead = true
  }

  /** Bytes wait in the proxy until `thaw`. */
  freeze(): void {
    for (const weather of Object.values(this.weather)) weather.frozen = true
  }

  /** Lets what waited go, in its order, and brings back calm weather in both directions. */
  thaw(): void {
    for (const weather of Object.values(this.weather)) Object.assign(weather, calm())
    for (const flow of this.#flows) {
      for (const chunk of flow.held.splice(0)) this.#carry(flow, chunk)
    }
  }

  /** Resets every open connection at both ends. */
  cut(): void {
    for (const { from, to } of [...this.#flows]) {
      if (!from.destroyed) from.resetAndDestroy()
      if (!to.destroyed) to.resetAndDestroy()
    }
  }

  #accept(near: Socket): void {
    if (this.refuses) {
      this.refused += 1
      near.on("error", () => undefined)
      near.resetAndDestroy()
      return
    }
    this.connections += 1
    const far = connect({
      ...this.#target,
      ...(this.source === undefined ? {} : { localAddress: this.source }),
      noDelay: true,
      allowHalfOpen: true
    })
    const up = flowOf(near, far, "up")
    const down = flowOf(far, near, "down")
    for (const flow of [up, down]) {
      this.#flows.add(flow)
      flow.from.on("data", (chunk: Buffer) => this.#onData(flow, chunk))
      flow.from.on("end", () => {
        // A FIN is lost like everything else.
        if (this.#loses(flow)) return
        flow.tail = flow.tail.then(() => {
          flow.to.end()
        })
      })
      flow.from.on("error", () => {
        if (!this.#loses(flow) && !flow.to.destroyed) flow.to.resetAndDestroy()
      })
      flow.from.on("close", () => {
        this.#flows.delete(flow)
        // A close that nobody may learn of leaves the other end standing, as a network would.
        if (!this.#loses(flow)) flow.tail = flow.tail.then(() => void flow.to.end())
      })
    }
  }

  #loses(flow: Flow): boolean {
    return flow.dead || this.weather[flow.direction].lost
  }

  #onData(flow: Flow, chunk: Buffer): void {
    if (this.#loses(flow)) return
    if (this.weather[flow.direction].frozen) flow.held.push(chunk)
    else this.#carry(flow, chunk)
  }

  #carry(flow: Flow, chunk: Buffer): void {
    const { slice, delayMs } = this.weather[flow.direction]
    if (slice === 0 && delayMs === 0) {
      flow.tail = flow.tail.then(() => write(flow.to, chunk))
      return
    }
    const pieces = slice === 0 ? [chunk] : piecesOf(chunk, slice)
    const due = performance.now() + delayMs
    flow.tail = flow.tail.then(async () => {
      const wait = due - performance.now()
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
      for (const piece of pieces) {
        await write(flow.to, piece)
        // Without a turn for the reader the kernel would put the pieces together again.
        if (slice > 0) await new Promise((resolve) => setImmediate(resolve))
      }
    })
  }

  async #close(): Promise<void> {
    for (const { from, to } of [...this.#flows]) {
      from.destroy()
      to.destroy()
    }
    for (const server of this.#servers) server.close()
    this.#address = undefined
  }
}

const flowOf = (from: Socket, to: Socket, direction: Direction): Flow => ({
  from,
  to,
  direction,
  held: [],
  tail: Promise.resolve(),
  dead: false
})

const calm = (): Weather => ({ slice: 0, delayMs: 0, lost: false, frozen: false })

const piecesOf = (chunk: Buffer, size: number): Array<Buffer> => {
  const pieces: Array<Buffer> = []
  for (let start = 0; start < chunk.length; start += size) pieces.push(chunk.subarray(start, start + size))
  return pieces
}

/** Writes and waits until it is handed over, so that slow readers hold up the sender as a network would. */
const write = (socket: Socket, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => {
    if (socket.destroyed || socket.writableEnded) resolve()
    else socket.write(bytes, () => resolve())
  })
