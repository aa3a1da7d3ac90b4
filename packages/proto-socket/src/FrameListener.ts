// Accepts connections that will carry frames, over TCP or TLS. It owns the port, the TLS handshake and its deadline;
// an accepted connection belongs to whom it was given, also after the listener is closed.

import { createServer as createTcpServer, type Server, type Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import { Data, Effect, type Scope } from "effect"
import { FrameConnection, type FrameConnectionOptions } from "./FrameConnection.ts"
import { HandshakeWatch } from "./HandshakeWatch.ts"
import { type FramePeer, formatPeer, peerOf } from "./peerAddress.ts"
import { errorCode, errorText } from "./socketErrors.ts"
import { readAuthority, readIdentity, type TlsFileError } from "./tlsFiles.ts"

/** TLS of a listener: PEM files, read once when it opens. */
export interface TlsServerOptions {
  readonly certFile: string
  readonly keyFile: string
  /** With it, a peer must show a certificate that this authority signed (mutual TLS). */
  readonly clientCaFile?: string
}

/** An accepted connection that nobody reads yet. */
export interface FrameSocket extends FramePeer {
  /** Begins to read. At most once. */
  readonly open: (options: FrameConnectionOptions) => FrameConnection
  /** Drops the connection without a word. */
  readonly destroy: () => void
}

export interface FrameListenerOptions {
  /** Address or name to listen on. */
  readonly host: string
  /** 0 takes a free port, which `FrameListener.address` then says. */
  readonly port: number
  readonly tls?: TlsServerOptions
  /** How long a TLS handshake may take from the accept on, in milliseconds; bytes do not prolong it. Default 5,000. */
  readonly tlsHandshakeTimeoutMs?: number
  /** More connections than this at once, handshakes included, are dropped when they are accepted. Default: no limit. */
  readonly maxConnections?: number
  /**
   * A connection is there; with TLS after its handshake. It must be opened within the call: a socket that nobody reads
   * sees no end, so one that was not opened is destroyed.
   */
  readonly onConnection: (socket: FrameSocket) => void
  /** A connection was dropped because of `maxConnections`. */
  readonly onRefused?: (peer: FramePeer) => void
  /** A TLS handshake failed; the message is for a person. */
  readonly onTlsError?: (message: string, peer: FramePeer) => void
  /** Connections could not be accepted, as without free descriptors; the listener goes on. */
  readonly onAcceptError?: (message: string) => void
}

export interface FrameListener {
  /** Where it really listens. */
  readonly address: { readonly host: string; readonly port: number }
}

/** Why a listener could not be opened; the message says where and what to do. */
export class ListenError extends Data.TaggedError("ListenError")<{
  readonly reason:
    | "address_in_use"
    | "not_permitted"
    | "address_not_available"
    | "bad_host"
    | "bad_port"
    | "tls_file"
    | "other"
  readonly host: string
  readonly port: number
  readonly message: string
  readonly cause?: unknown
}> {}

const TLS_HANDSHAKE_TIMEOUT_MS = 5_000

/** Connections that the kernel keeps until they are accepted: many boxes come back at once after a power cut. */
const BACKLOG = 1_024

/** Listens until the scope is closed. What was accepted until then goes on; unfinished TLS handshakes do not. */
export const listenFrames = Effect.fnUntraced(function* (
  options: FrameListenerOptions
): Effect.fn.Return<FrameListener, ListenError, Scope.Scope> {
  const { host, port } = options
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    return yield* new ListenError({
      reason: "bad_port",
      host,
      port,
      message: `cannot listen on port ${port}: a port is a whole number from 0 to 65535`
    })
  }
  const watch = new HandshakeWatch(
    options.tlsHandshakeTimeoutMs ?? TLS_HANDSHAKE_TIMEOUT_MS,
    options.onTlsError
  )
  const server = options.tls ? yield* makeTlsServer(options, options.tls, watch) : makeTcpServer(options)
  if (options.maxConnections !== undefined) server.maxConnections = options.maxConnections
  server.on("drop", (data) => {
    options.onRefused?.(peerOf({ remoteAddress: data?.remoteAddress, remotePort: data?.remotePort }))
  })
  yield* Effect.acquireRelease(listen(server, options), () =>
    Effect.sync(() => {
      server.close()
      watch.destroy()
    })
  )
  const address = server.address()
  return typeof address === "object" && address !== null
    ? { address: { host: address.address, port: address.port } }
    : { address: { host, port } }
})

const listen = (server: Server, { host, port, onAcceptError }: FrameListenerOptions) =>
  Effect.callback<void, ListenError>((resume) => {
    const onError = (cause: Error) => {
      server.off("listening", onListening)
      resume(Effect.fail(listenError(host, port, cause)))
    }
    const onListening = () => {
      server.on("error", (error) =>
        onAcceptError?.(`a connection could not be accepted: ${errorText(error)}`)
      )
      server.off("error", onError)
      resume(Effect.void)
    }
    server.once("error", onError)
    server.once("listening", onListening)
    server.listen({ host, port, backlog: BACKLOG })
  })

function listenError(host: string, port: number, cause: Error): ListenError {
  const where = formatPeer(host, port)
  const fail = (reason: ListenError["reason"], message: string) =>
    new ListenError({ reason, host, port, message, cause })
  switch (errorCode(cause)) {
    case "EADDRINUSE":
      return fail(
        "address_in_use",
        `cannot listen on ${where}: another process has this port; stop it or choose another port`
      )
    case "EACCES":
    case "EPERM":
      return fail(
        "not_permitted",
        `cannot listen on ${where}: this user may not open the port; choose one from 1024 on`
      )
    case "EADDRNOTAVAIL":
      return fail("address_not_available", `cannot listen on ${where}: this machine has no address ${host}`)
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EAI_FAIL":
    case "EAI_NONAME":
    case "EAI_NODATA":
      return fail("bad_host", `cannot listen on ${where}: the name ${host} cannot be resolved`)
    case "EINVAL":
    case "EAFNOSUPPORT":
      return fail(
        "bad_host",
        `cannot listen on ${where}: ${host} is not an address that this machine can listen on`
      )
    default:
      return fail("other", `cannot listen on ${where}: ${errorText(cause)}`)
  }
}

const makeTcpServer = (options: FrameListenerOptions): Server => {
  const server = createTcpServer({ noDelay: true })
  server.on("connection", (socket) => handOver(socket, options))
  return server
}

const makeTlsServer = Effect.fnUntraced(function* (
  options: FrameListenerOptions,
  tls: TlsServerOptions,
  watch: HandshakeWatch
): Effect.fn.Return<Server, ListenError> {
  const asListenError = (error: TlsFileError) =>
    new ListenError({
      reason: "tls_file",
      host: options.host,
      port: options.port,
      message: `cannot listen on ${formatPeer(options.host, options.port)}: ${error.message}`,
      cause: error
    })
  const identity = yield* Effect.mapError(readIdentity(tls.certFile, tls.keyFile), asListenError)
  const ca =
    tls.clientCaFile === undefined
      ? undefined
      : yield* Effect.mapError(readAuthority(tls.clientCaFile), asListenError)
  const server = yield* Effect.try({
    try: () =>
      createTlsServer({
        ...identity,
        ...(ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: true }),
        noDelay: true
      }),
    catch: (cause) =>
      new ListenError({
        reason: "tls_file",
        host: options.host,
        port: options.port,
        message: `the certificate in ${tls.certFile} cannot be used for TLS: ${errorText(cause)}`,
        cause
      })
  })
  watch.attach(server)
  server.on("secureConnection", (socket) => handOver(socket, options))
  return server
})

function handOver(socket: Socket, options: FrameListenerOptions): void {
  // A peer that resets at once leaves a socket without an address, and its error must find a listener.
  socket.on("error", ignoreError)
  if (socket.destroyed || socket.remoteAddress === undefined) {
    socket.destroy()
    return
  }
  let opened = false
  try {
    options.onConnection({
      ...peerOf(socket),
      open: (connectionOptions) => {
        if (opened) throw new Error("a FrameSocket can be opened once")
        opened = true
        return new FrameConnection(socket, connectionOptions)
      },
      destroy: () => {
        socket.destroy()
      }
    })
  } catch (error) {
    socket.destroy()
    // One connection's fault must not end the process with every other connection, nor pass unseen.
    process.emitWarning(error instanceof Error ? error : String(error))
    return
  }
  if (!opened) socket.destroy()
}

/** The `close` that follows tells the owner of an opened connection; one that was never opened has no owner. */
const ignoreError = () => undefined
