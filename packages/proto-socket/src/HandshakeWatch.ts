// Watches the TLS handshakes of a listener: ends those that take too long, and says of each that fails who it was and
// what went wrong, which Node tells in several events, some of them without an address.

import type { Socket } from "node:net"
import type { Server, TLSSocket } from "node:tls"
import { type FramePeer, peerOf } from "./peerAddress.ts"
import { describeTlsCode, describeTlsError, errorCode, errorText } from "./socketErrors.ts"

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
  /** Those whose socket is closed and whose error, if it has one, comes in this same turn, in the same order. */
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
      // A socket that is closed has lost its address.
      const handshake = this.#take(socket) ?? this.#closed.shift()
      const peer = handshake?.peer ?? peerOf(socket)
      socket.destroy()
      this.#onError?.(this.#describe(error, socket, handshake), peer)
    })
  }

  /** Ends every handshake that still runs. */
  destroy(): void {
    for (const { socket } of this.#running.values()) socket.destroy()
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
      this.#closed.push(handshake)
      setImmediate(() => {
        const index = this.#closed.indexOf(handshake)
        if (index >= 0) this.#closed.splice(index, 1)
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

  #describe(error: Error, socket: TLSSocket, handshake: Handshake | undefined): string {
    if (handshake?.timedOut === true) return `the TLS handshake was not finished within ${this.#timeoutMs} ms`
    // A certificate that is not trusted ends the handshake without an error of its own.
    const refused: unknown = socket.authorizationError
    if (typeof refused === "string") {
      return describeTlsCode(refused) ?? `the peer's certificate is refused: ${refused}`
    }
    const sentence = describeTlsError(error)
    if (sentence !== undefined) return sentence
    return errorCode(error) === "ECONNRESET"
      ? "the peer ended the connection during the TLS handshake"
      : `the TLS handshake failed: ${errorText(error)}`
  }
}

const handshakeKey = (socket: Socket): string => `${socket.remoteAddress} ${socket.remotePort}`

const ignoreError = () => undefined
