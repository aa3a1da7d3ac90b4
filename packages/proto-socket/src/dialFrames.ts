// Dials a peer that speaks frames, over TCP or TLS, and says in words why it could not.

import { connect as connectTcp, isIP, type Socket } from "node:net"
import { type ConnectionOptions, checkServerIdentity, connect as connectTls } from "node:tls"
import { Effect } from "effect"
import { type DialError, describeDialFailure, dialError } from "./DialError.ts"
import { describeForeignBytes } from "./describePeer.ts"
import { FrameConnection, type FrameConnectionOptions } from "./FrameConnection.ts"
import { readAuthority, readIdentity, type TlsFileError } from "./tlsFiles.ts"

/** TLS of a dialler: PEM files, read at every dial, so that a renewed certificate is found. */
export interface TlsClientOptions {
  /** Authority that the peer's certificate must come from. Default: those that Node trusts. */
  readonly caFile?: string
  /** This side's certificate and its key, for a peer that wants one; both or neither. */
  readonly certFile?: string
  readonly keyFile?: string
  /** Name that the peer's certificate must have. Default: the host that is dialled. */
  readonly serverName?: string
}

export interface DialOptions extends FrameConnectionOptions {
  readonly host: string
  readonly port: number
  /** For resolving, connecting and the TLS handshake together, in milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number
  readonly tls?: TlsClientOptions
}

const CONNECT_TIMEOUT_MS = 10_000

/**
 * Connects and begins to read: `onFrames` may be called before this effect has returned. The connection is the
 * caller's; interrupting the dial destroys the socket. (As the acquisition of a resource it needs
 * `Effect.acquireRelease(…, …, { interruptible: true })` to be interruptible.)
 *
 * With TLS 1.3 a peer judges this side's certificate after the handshake: its refusal ends the open connection, with
 * reason `error` or `reset`, and is not a `DialError`. Where the peer does not say so itself, the message of a connection
 * that it ended without a byte names the likely cause.
 */
export const dialFrames = Effect.fnUntraced(function* (
  options: DialOptions
): Effect.fn.Return<FrameConnection, DialError> {
  const { host, port } = options
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    return yield* dialError(options, "other", `${port} is not a port; it is a whole number from 1 to 65535`)
  }
  const tls = options.tls === undefined ? undefined : yield* tlsOptions(options, options.tls)
  const timeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS
  let socket: Socket | undefined
  return yield* Effect.callback<FrameConnection, DialError>((resume) => {
    const dialled =
      tls === undefined ? connectTcp({ host, port, noDelay: true }) : connectTls({ ...tls, host, port })
    socket = dialled
    const settle = (result: Effect.Effect<FrameConnection, DialError>) => {
      clearTimeout(timer)
      dialled.off("error", onError)
      dialled.off("close", onClose)
      // Errors of a socket that was given up have nobody to be told to.
      dialled.on("error", ignoreError)
      resume(result)
    }
    const fail = (error: DialError) => {
      settle(Effect.fail(error))
      dialled.destroy()
    }
    const onError = (cause: Error) => fail(describeDialFailure(options, cause))
    const onClose = () => fail(dialError(options, "other", "the peer closed the connection at once"))
    const timer = setTimeout(
      () =>
        fail(
          dialError(
            options,
            "timeout",
            `no answer within ${timeoutMs} ms; is the address right and the port open?`
          )
        ),
      timeoutMs
    )
    dialled.once("error", onError)
    dialled.once("close", onClose)
    dialled.once(tls === undefined ? "connect" : "secureConnect", () => {
      settle(Effect.succeed(new FrameConnection(dialled, { ...options, onClose: withHint(options) })))
    })
    return Effect.sync(() => clearTimeout(timer))
  }).pipe(
    // Around the callback, so that it also covers a connection that was made but not yet handed over.
    Effect.onInterrupt(() => Effect.sync(() => socket?.destroy()))
  )
})

const ignoreError = () => undefined

/**
 * A peer that ends a connection before its first byte dislikes how it was dialled, and one that answers in another
 * protocol is another server; a node's log is where this helps.
 */
const withHint =
  ({ onClose, tls }: DialOptions): FrameConnectionOptions["onClose"] =>
  (reason, connection) => {
    const foreign =
      reason.tag === "frame_too_large" || reason.tag === "truncated"
        ? describeForeignBytes(connection.firstBytes)
        : undefined
    if (foreign !== undefined) {
      const message = `the peer answers ${foreign}, so this is not its port for nodes (an edge's is 7610 unless it is configured)`
      onClose({ ...reason, message }, connection)
      return
    }
    const silent = connection.counters.bytesIn === 0 && (reason.tag === "ended" || reason.tag === "reset")
    onClose(silent ? { ...reason, message: `${reason.message} ${silenceHint(tls)}` } : reason, connection)
  }

const silenceHint = (tls: TlsClientOptions | undefined): string => {
  const without = "before the peer had sent anything"
  if (tls === undefined) return `${without}; does the peer want TLS?`
  return tls.certFile === undefined
    ? `${without}; it may want a client certificate`
    : `${without}; it may not accept this side's certificate, its own log says why`
}

const tlsOptions = Effect.fnUntraced(function* (
  options: DialOptions,
  tls: TlsClientOptions
): Effect.fn.Return<ConnectionOptions, DialError> {
  const asDialError = (error: TlsFileError) => dialError(options, "tls", error.message, error)
  const ca =
    tls.caFile === undefined ? undefined : yield* Effect.mapError(readAuthority(tls.caFile), asDialError)
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
    return yield* dialError(
      options,
      "tls",
      "a client certificate needs both a certificate file and a key file"
    )
  }
  const identity =
    tls.certFile === undefined || tls.keyFile === undefined
      ? {}
      : yield* Effect.mapError(readIdentity(tls.certFile, tls.keyFile), asDialError)
  const name = tls.serverName ?? options.host
  return {
    ...identity,
    ...(ca === undefined ? {} : { ca }),
    // An address may not be sent as a server name, but is checked against the certificate all the same.
    servername: isIP(name) === 0 ? name : "",
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate)
  }
})
