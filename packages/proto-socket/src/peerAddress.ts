// How the address of a peer is written, so that one box has one address wherever it is counted or shown.

/** Where a connection comes from. */
export interface FramePeer {
  /** IPv4 in its IPv4 form; `unknown` when the peer was gone before it could be asked. */
  readonly remoteAddress: string
  /** 0 when unknown. */
  readonly remotePort: number
}

/** The peer of a socket. */
export function peerOf(socket: {
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
}): FramePeer {
  return { remoteAddress: peerAddress(socket.remoteAddress), remotePort: socket.remotePort ?? 0 }
}

/** The address with an IPv4 peer of a dual-stack socket (`::ffff:192.0.2.1`) in its IPv4 form; `unknown` for none. */
export function peerAddress(address: string | undefined): string {
  if (address === undefined || address === "") return "unknown"
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address
}

/** `192.0.2.1:7610` or `[2001:db8::1]:7610`. */
export function formatPeer(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`
}
