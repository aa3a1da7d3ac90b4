// One raw connection: sends any bytes, reads frames strictly, and waits for what ought to come. Every wait has a bound,
// and a wait in vain says what it waited for and what came instead.
import type { Socket } from "node:net"
import { RuleBroken } from "../outcomes.ts"
import { FrameReader } from "./framing.ts"

/** What a peer's envelope looks like to this class. */
export interface Envelope {
  readonly body: { readonly case?: string | undefined; readonly value?: unknown }
}

/** How the peer ended the connection. */
export interface PeerEnd {
  /** Whether it was reset instead of closed in order. */
  readonly reset: boolean
}

interface Waiter<Frame> {
  readonly look: (frame: Frame) => boolean
  readonly fail: (came: string) => void
}

/** Largest frame of either direction that the kit itself takes, in bytes. */
const MAX_FRAME_BYTES = 32 * 1024 * 1024

/** A raw connection to what is judged. */
export class Peer<Frame extends Envelope> {
  readonly socket: Socket
  /** Every frame that came, in order. */
  readonly received: Array<Frame> = []
  /** Bytes that came, headers counted. */
  bytesIn = 0
  /** How long the peer may take to answer, in milliseconds. */
  readonly patienceMs: number
  readonly #decode: (payload: Uint8Array) => Frame
  readonly #untaken: Array<Frame> = []
  readonly #waiters = new Set<Waiter<Frame>>()
  readonly #endWaiters = new Set<() => void>()
  readonly #reader = new FrameReader(MAX_FRAME_BYTES)
  #end: PeerEnd | undefined
  #fault: string | undefined
  #reset = false

  constructor(socket: Socket, decode: (payload: Uint8Array) => Frame, patienceMs: number) {
    this.socket = socket
    this.#decode = decode
    this.patienceMs = patienceMs
    socket.setNoDelay(true)
    socket.on("data", (chunk: Buffer) => this.#onData(chunk))
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNRESET" || error.code === "EPIPE") this.#reset = true
    })
    socket.once("end", () => this.#onEnd())
    socket.once("close", () => this.#onEnd())
  }

  /** How the peer ended the connection; undefined while it has not. */
  get over(): PeerEnd | undefined {
    return this.#end
  }

  /** Bytes of a frame that the peer began and did not finish. */
  get unfinishedBytes(): number {
    return this.#reader.pending
  }

  /** Sends bytes as they are. */
  sendBytes(bytes: Uint8Array): void {
    if (!this.socket.destroyed && this.socket.writable) this.socket.write(bytes)
  }

  /** Closes this end in order. */
  close(): void {
    this.socket.end()
  }

  /** Cuts the connection. */
  destroy(): void {
    this.socket.destroy()
  }

  /** The first frame, now or later, that `pick` makes something of; it is then taken. */
  take<A>(what: string, pick: (frame: Frame) => A | undefined, boundMs = this.patienceMs): Promise<A> {
    for (const [at, frame] of this.#untaken.entries()) {
      const found = pick(frame)
      if (found === undefined) continue
      this.#untaken.splice(at, 1)
      return Promise.resolve(found)
    }
    return new Promise((resolve, reject) => {
      const fail = (came: string) => {
        clearTimeout(timer)
        this.#waiters.delete(waiter)
        reject(new RuleBroken(what, came))
      }
      const waiter: Waiter<Frame> = {
        look: (frame) => {
          const found = pick(frame)
          if (found === undefined) return false
          clearTimeout(timer)
          this.#waiters.delete(waiter)
          resolve(found)
          return true
        },
        fail
      }
      const timer = setTimeout(() => fail(`${this.#heard()} within ${boundMs} ms`), boundMs)
      this.#waiters.add(waiter)
      if (this.#fault !== undefined) fail(this.#fault)
      else if (this.#end !== undefined) fail(this.#farewell())
    })
  }

  /** Fails if within the time a frame comes that `pick` makes something of, or the link ends. */
  async nothing<A>(what: string, pick: (frame: Frame) => A | undefined, forMs: number): Promise<void> {
    const stray = "a frame that must not come"
    try {
      await this.take(stray, (frame) => (pick(frame) === undefined ? undefined : frame), forMs)
    } catch (error) {
      if (error instanceof RuleBroken && this.#end === undefined && this.#fault === undefined) return
      throw error instanceof RuleBroken ? new RuleBroken(what, error.came) : error
    }
    throw new RuleBroken(what, describe(this.received.at(-1)))
  }

  /** Waits until the peer ends the connection; frames that come before are kept. */
  ended(what: string, boundMs = this.patienceMs): Promise<PeerEnd> {
    if (this.#end !== undefined) return Promise.resolve(this.#end)
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        this.#endWaiters.delete(done)
        resolve(this.#end ?? { reset: false })
      }
      const timer = setTimeout(() => {
        this.#endWaiters.delete(done)
        reject(new RuleBroken(what, `a link that is still open after ${boundMs} ms`))
      }, boundMs)
      this.#endWaiters.add(done)
    })
  }

  /** Called with each frame before anybody waits for it. True: it is dealt with. */
  protected handle(_frame: Frame): boolean {
    return false
  }

  #onData(chunk: Buffer): void {
    this.bytesIn += chunk.length
    let payloads: ReadonlyArray<Buffer>
    try {
      payloads = this.#reader.push(chunk)
    } catch (error) {
      this.#broke(error instanceof Error ? error.message : String(error))
      return
    }
    for (const payload of payloads) {
      let frame: Frame
      try {
        frame = this.#decode(payload)
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error)
        this.#broke(`a frame that does not decode (R-FRAME-5, R-TEXT-1): ${why}`)
        return
      }
      this.received.push(frame)
      if (this.handle(frame)) continue
      if (![...this.#waiters].some((waiter) => waiter.look(frame))) this.#untaken.push(frame)
    }
  }

  #broke(message: string): void {
    this.#fault = message
    for (const waiter of [...this.#waiters]) waiter.fail(message)
    this.socket.destroy()
  }

  #onEnd(): void {
    if (this.#end !== undefined) return
    this.#end = { reset: this.#reset }
    for (const waiter of [...this.#waiters]) waiter.fail(this.#farewell())
    for (const done of [...this.#endWaiters]) done()
  }

  #farewell(): string {
    const last = this.received.at(-1)
    return `the end of the link${last === undefined ? ", without a frame" : `, after ${describe(last)}`}`
  }

  #heard(): string {
    const last = this.#untaken.at(-1)
    return last === undefined ? "nothing" : `nothing but ${describe(last)}`
  }
}

/** Longest description of a frame in a message. */
const MAX_DESCRIPTION = 160

/** A frame in a few words; texts are shown as JSON, so escaped. */
export const describe = (frame: Envelope | undefined): string => {
  if (frame === undefined) return "nothing"
  if (frame.body.case === undefined) return "a frame without a known body"
  const text = JSON.stringify(frame.body.value, (key, value: unknown) =>
    key === "$typeName" || key === "$unknown" || key === "token" || key === "bootId"
      ? undefined
      : typeof value === "bigint"
        ? String(value)
        : value
  )
  return `${frame.body.case} ${text.length > MAX_DESCRIPTION ? `${text.slice(0, MAX_DESCRIPTION)}…` : text}`
}

/** The name of an enum's value, or the value where it has none. */
export const nameOf = (names: Readonly<Record<string, number>>, value: number): string =>
  Object.entries(names).find(([, number]) => number === value)?.[0] ?? String(value)
