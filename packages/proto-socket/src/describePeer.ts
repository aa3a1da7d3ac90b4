// Names what a peer speaks that is not our protocol, from its first bytes, so that a log line can say
// "peer speaks HTTP on the node port" instead of a number.

/** What the first bytes of a stranger look like. */
export type ForeignProtocol =
  | "HTTP"
  | "HTTP/2"
  | "TLS"
  | "SSH"
  | "SOCKS"
  | "PROXY protocol"
  | "PostgreSQL"
  | "MQTT"
  | "RDP"
  | "Redis"
  | "FTP or SMTP"

const METHODS = ["GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE "]

const PREFIXES: ReadonlyArray<readonly [string, ForeignProtocol]> = [
  ["PRI * HTTP/2", "HTTP/2"],
  ["HTTP/", "HTTP"],
  ...METHODS.map((method) => [method, "HTTP"] as const),
  ["SSH-", "SSH"],
  ["PROXY TCP", "PROXY protocol"],
  ["PROXY UNKNOWN", "PROXY protocol"],
  ["\r\n\r\n\0\r\nQUIT\n", "PROXY protocol"],
  ["\0\0\0\u0008\u0004\u00d2\u0016\u002f", "PostgreSQL"],
  ["EHLO ", "FTP or SMTP"],
  ["HELO ", "FTP or SMTP"],
  ["220 ", "FTP or SMTP"],
  ["220-", "FTP or SMTP"],
  ["PING\r\n", "Redis"],
  ["\u0005\u0001\0", "SOCKS"],
  ["\u0005\u0002\0", "SOCKS"],
  ["\u0004\u0001", "SOCKS"],
  ["\u0003\0\0", "RDP"]
]

/** The protocol that `bytes` (the first 16 or so of a connection) begin, or undefined for one that is not known. */
export function describeForeignBytes(bytes: Uint8Array): ForeignProtocol | undefined {
  if (isTls(bytes)) return "TLS"
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")
  for (const [prefix, protocol] of PREFIXES) if (text.startsWith(prefix)) return protocol
  // A CONNECT packet: its type, a length of one to four bytes, and the length and name of the protocol.
  if (bytes[0] === 0x10 && /^.{2,5}\0.(MQTT|MQIsdp)/s.test(text)) return "MQTT"
  if (/^\*[0-9]+\r\n\$[0-9]+\r\n/.test(text)) return "Redis"
  // A start-up packet: its length, protocol version 3.0, and the first parameter's name.
  if (text.slice(4, 12) === "\0\u0003\0\0user") return "PostgreSQL"
  return undefined
}

/** A TLS record: a handshake, of major version 3, that holds a ClientHello where there is that much of it. */
function isTls(bytes: Uint8Array): boolean {
  if (bytes[0] !== 0x16 || bytes[1] !== 3 || bytes[2] === undefined || bytes[2] > 4) return false
  return bytes[5] === undefined || bytes[5] === 1
}
