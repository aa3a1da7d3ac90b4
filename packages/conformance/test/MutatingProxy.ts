// Stands between the kit and a peer that keeps the rules, and breaks them for it: so that each way of being wrong is one
// function over frames, and everything else about the peer is real.
import { connect, createServer, type Server, type Socket } from "node:net"
import { frameOf } from "../src/peer/framing.ts"
import type { Address } from "../src/trial/Address.ts"

/** What becomes of a frame: whole frames to write in its place, or nothing in particular: it goes on as it is. */
export type Mutation = (
  payload: Buffer,
  back: (payload: Uint8Array) => void
) => ReadonlyArray<Uint8Array> | undefined

export interface Mutations {
  /** Frames of whoever dialled the proxy. */
  readonly up?: Mutation
  /** Frames of what the proxy dials. */
  readonly down?: Mutation
}

const HEADER_BYTES = 4

export class MutatingProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server) {
    this.#server = server
  }

  /** Listens; dials the target for each connection. Mutations are made per connection: they may remember. */
  static async start(
    cleanup: AsyncDisposableStack,
    target: () => Address,
    mutations: () => Mutations
  ): Promise<MutatingProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true })
    const proxy = new MutatingProxy(server)
    server.on("connection", (down) => {
      const up = connect({ ...target(), allowHalfOpen: true, noDelay: true })
      const { down: changeDown, up: changeUp } = mutations()
      proxy.#pipe(down, up, changeUp)
      proxy.#pipe(up, down, changeDown)
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    cleanup.defer(async () => {
      for (const socket of proxy.#sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    })
    return proxy
  }

  get address(): Address {
    const address = this.#server.address()
    return { host: "127.0.0.1", port: typeof address === "object" ? (address?.port ?? 0) : 0 }
  }

  #pipe(from: Socket, to: Socket, mutate: Mutation | undefined): void {
    this.#sockets.add(from)
    let buffer: Buffer = Buffer.alloc(0)
    from.on("data", (chunk: Buffer) => {
      if (mutate === undefined) {
        to.write(chunk)
        return
      }
      buffer = Buffer.concat([buffer, chunk])
      while (buffer.length >= HEADER_BYTES) {
        const end = HEADER_BYTES + buffer.readUInt32BE(0)
        if (buffer.length < end) return
        const payload = buffer.subarray(HEADER_BYTES, end)
        buffer = buffer.subarray(end)
        const frames = mutate(payload, (answer) => from.write(frameOf(answer))) ?? [frameOf(payload)]
        for (const frame of frames) to.write(frame)
      }
    })
    from.on("error", () => to.destroy())
    from.on("end", () => {
      if (buffer.length > 0) to.write(buffer)
      to.end()
    })
    from.on("close", () => {
      this.#sockets.delete(from)
      if (from.errored !== null || !to.writableEnded) to.destroy()
    })
  }
}
