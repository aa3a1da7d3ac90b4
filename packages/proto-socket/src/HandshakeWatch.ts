// Watches the TLS handshakes of a listener: ends those that take too long, and says of each that fails who it was and
// what went wrong, which Node tells in several events, some of them without an address.

import type { Socket } from "node:net"
import type { Server } from "node:tls"
import { type FramePeer, peerOf } from "./peerAddress.ts"
import { describeTlsCode, describeTlsError, errorText, isReset } from "./socketErrors.ts"

interface Handshake {
  readonly socket: Socket
  readonly peer: FramePeer
  readonly timer: NodeJS.Timeout
  timedOut: boolean
}

export class HandshakeWatch {
  readonly #timeoutMs: number
  readonly #onError: ((message: string, peer: FramePeer) => void) | undefined
  /** By address and port, which name one connection at a time. */
  readonly #running = new Map<string, Handshake>()
  /** Those whose socket was closed in this turn; an error may follow. */
  readonly #closed: Array<Handshake> = []

  /** @param timeoutMs from the accept on, whatever the peer sends; milliseconds */
  constructor(timeoutMs: number, onError?: (message: string, peer: FramePeer) => void) {
    this.#timeoutMs = timeoutMs
    this.#onError = onError
  }

  /** Watches every handshake of a server that does not listen yet. */
  attach(server: Server): void {
    server.on("connection", (socket: Socket) => this.#begin(socket))
    server.on("secureConnection", (socket) => this.#take(socket))
    server.on("tlsClientError", (error, socket) => {
      const handshake = this.#take(socket)
      socket.destroy()
      if (handshake !== undefined) {
        this.#onError?.(describeHandshakeError(error), handshake.peer)
        return
      }
      // The error of a socket that is closed says nothing that its close did not say, with one exception: a
      // certificate that is not trusted closes the socket first, and is told right after that, without an address.
      const refused: unknown = socket.authorizationError
      if (typeof refused === "string") {
        const peer = this.#closed.pop()?.peer ?? peerOf(socket)
        this.#onError?.(describeTlsCode(refused) ?? `the peer's certificate is refused: ${refused}`, peer)
      }
    })
  }

  /** Ends every handshake that still runs, without a report: it is this side that ends them. */
  destroy(): void {
    for (const [key, handshake] of this.#running) {
      this.#remove(key, handshake)
      handshake.socket.destroy()
    }
  }

  #begin(socket: Socket): void {
    // Its error is told as a `tlsClientError`; one that comes before TLS has begun must not be without a listener.
    socket.on("error", ignoreError)
    if (socket.remoteAddress === undefined) {
      socket.destroy()
      return
    }
    const key = handshakeKey(socket)
    const handshake: Handshake = {
      socket,
      peer: peerOf(socket),
      timedOut: false,
      timer: setTimeout(() => {
        handshake.timedOut = true
        socket.destroy()
      }, this.#timeoutMs)
    }
    this.#running.set(key, handshake)
    socket.once("close", () => {
      if (this.#running.get(key) !== handshake) return
      this.#remove(key, handshake)
      if (handshake.timedOut) {
        this.#onError?.(`the TLS handshake was not finished within ${this.#timeoutMs} ms`, handshake.peer)
        return
      }
      this.#closed.push(handshake)
      setImmediate(() => {
        const index = this.#closed.indexOf(handshake)
        if (index < 0) return
        this.#closed.splice(index, 1)
        this.#onError?.("the peer ended the connection during the TLS handshake", handshake.peer)
      })
    })
  }

  #take(socket: Socket): Handshake | undefined {
    const key = handshakeKey(socket)
    const handshake = this.#running.get(key)
    if (handshake !== undefined) this.#remove(key, handshake)
    return handshake
  }

  #remove(key: string, handshake: Handshake): void {
    clearTimeout(handshake.timer)
    this.#running.delete(key)
  }
}

function describeHandshakeError(error: Error): string {
  const sentence = describeTlsError(error)
  if (sentence !== undefined) return sentence
  return isReset(error)
    ? "the peer ended the connection during the TLS handshake"
    : `the TLS handshake failed: ${errorText(error)}`
}

const handshakeKey = (socket: Socket): string => `${socket.remoteAddress} ${socket.remotePort}`

const ignoreError = () => undefined
