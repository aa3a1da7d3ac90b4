// Whether a request was meant for this listener. A web page that a browser shows can make it send requests anywhere;
// checking Host (against names that an attacker has pointed here) and Origin keeps such pages out, loopback included.
import type { IncomingMessage } from "node:http"
import { isIP } from "node:net"

/** Splits `name:port`, `[::1]:port` or a bare name. */
const parseHost = (
  host: string
): { readonly name: string; readonly port: number | undefined } | undefined => {
  const match = /^(\[[0-9A-Fa-f:.%]+\]|[^:\s/@[\]]+)(?::(\d{1,5}))?$/.exec(host)
  if (match === null) return undefined
  const name = (match[1] ?? "").toLowerCase().replace(/^\[|\]$/g, "")
  return { name, port: match[2] === undefined ? undefined : Number(match[2]) }
}

const unmapped = (address: string | undefined): string =>
  (address ?? "").replace(/^::ffff:/i, "").toLowerCase()

export interface HostRule {
  /** The listener's own host from the configuration. */
  readonly host: string
  /** Further names, from the configuration; any port, since a proxy may stand before them. */
  readonly names: ReadonlyArray<string>
}

/** Whether the request's Host is one of the listener's own names, or the address it came in by, with its port. */
export const hostAllowed = (request: IncomingMessage, rule: HostRule): boolean => {
  const header = request.headers.host
  // Browsers always send it; HTTP/1.1 requires it, which node:http checks before this.
  if (header === undefined) return request.httpVersionMajor === 1 && request.httpVersionMinor === 0
  const host = parseHost(header)
  if (host === undefined) return false
  if (
    rule.names.some((name) => name.toLowerCase() === host.name || name.toLowerCase() === header.toLowerCase())
  ) {
    return true
  }
  if ((host.port ?? 80) !== request.socket.localPort) return false
  // An attacker can point a name here but never an address, and this one is where the connection really ended.
  if (isIP(host.name) !== 0) return host.name === unmapped(request.socket.localAddress)
  return host.name === "localhost" || host.name === rule.host.toLowerCase()
}

/** Whether the request comes from no web page, or from one that this listener served itself. */
export const originAllowed = (request: IncomingMessage): boolean => {
  const { origin, host } = request.headers
  if (origin === undefined) return true
  const url = URL.parse(origin)
  if (url === null || host === undefined) return false
  return (url.protocol === "http:" || url.protocol === "https:") && url.host === host.toLowerCase()
}
