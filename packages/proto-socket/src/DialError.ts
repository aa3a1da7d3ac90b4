// Why a dial failed, in one kind for the program and one sentence for the person at the box.

import { Data } from "effect"
import { formatPeer } from "./peerAddress.ts"
import { describeTlsError, errorCode, errorText, isReset } from "./socketErrors.ts"

/** A dial that failed; the message says where, why and what to do. */
export class DialError extends Data.TaggedError("DialError")<{
  /**
   * `refused`: nothing listens. `unresolved`: the name. `timeout`: no answer. `unreachable`: no way there.
   * `tls`: the handshake, a certificate or a file of one. `other`: anything else.
   */
  readonly kind: "refused" | "unresolved" | "timeout" | "unreachable" | "tls" | "other"
  readonly host: string
  readonly port: number
  readonly message: string
  readonly cause?: unknown
}> {}

/** What was dialled, as far as an error needs it. */
export interface DialTarget {
  readonly host: string
  readonly port: number
  /** Present when the dial was over TLS. */
  readonly tls?: object
}

/** An error whose message begins with where. */
export function dialError(
  { host, port }: DialTarget,
  kind: DialError["kind"],
  what: string,
  cause?: unknown
): DialError {
  const message = `cannot connect to ${formatPeer(host, port)}: ${what}`
  return new DialError({ kind, host, port, message, ...(cause === undefined ? {} : { cause }) })
}

/** Explains the error that a socket failed with before it was connected. */
export function describeDialFailure(target: DialTarget, cause: Error): DialError {
  // Node tries every address of a name and then fails with all their errors together; the first speaks for them.
  const error = cause instanceof AggregateError && cause.errors[0] instanceof Error ? cause.errors[0] : cause
  const fail = (kind: DialError["kind"], what: string) => dialError(target, kind, what, cause)
  const tls = target.tls === undefined ? undefined : describeTlsError(error)
  if (tls !== undefined) return fail("tls", tls)
  switch (errorCode(error)) {
    case "ECONNREFUSED":
      return fail("refused", "nothing listens on that port, or a firewall refuses it")
    case "ENOTFOUND":
    case "EAI_NONAME":
    case "EAI_NODATA":
      return fail("unresolved", `the name ${target.host} is not known; is it spelled right?`)
    case "EAI_AGAIN":
    case "EAI_FAIL":
      return fail(
        "unresolved",
        `the name ${target.host} cannot be resolved now; does name resolution work on this machine?`
      )
    case "ETIMEDOUT":
      return fail("timeout", "no answer; is the address right and the port open?")
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "EHOSTDOWN":
    case "ENETDOWN":
    case "EADDRNOTAVAIL":
      return fail("unreachable", "there is no way to that address from this machine")
  }
  if (!isReset(error)) return fail("other", errorText(error))
  return target.tls === undefined
    ? fail("other", "the peer cut the connection at once")
    : fail("tls", "the peer cut the connection during the TLS handshake; does it speak TLS?")
}
