import { assert, describe, it } from "@effect/vitest"
import { describeForeignBytes } from "./describePeer.ts"
import { wireFrame } from "./testing/sockets.ts"

const bytes = (text: string) => Buffer.from(text, "latin1")

describe("describeForeignBytes (FR7)", () => {
  const cases: ReadonlyArray<readonly [string, Uint8Array, string | undefined]> = [
    ["an HTTP request", bytes("GET / HTTP/1.1\r\n"), "HTTP"],
    ["an HTTP request with a body", bytes("POST /v1/chat/c"), "HTTP"],
    ["an HTTP answer", bytes("HTTP/1.1 400 Bad"), "HTTP"],
    ["an HTTP/2 preface", bytes("PRI * HTTP/2.0\r\n"), "HTTP/2"],
    ["a TLS 1.3 ClientHello", Buffer.from("16030102000100fc0303", "hex"), "TLS"],
    ["a TLS record that is cut", Buffer.from("160301", "hex"), "TLS"],
    ["a TLS record that holds no ClientHello", Buffer.from("160301020002", "hex"), undefined],
    ["an SSH banner", bytes("SSH-2.0-OpenSSH_"), "SSH"],
    ["a SOCKS greeting", Buffer.from("050100", "hex"), "SOCKS"],
    ["a line of the PROXY protocol", bytes("PROXY TCP4 192.0"), "PROXY protocol"],
    ["the binary PROXY protocol", Buffer.from("0d0a0d0a000d0a515549540a21110000", "hex"), "PROXY protocol"],
    ["a PostgreSQL client that asks for TLS", Buffer.from("0000000804d2162f", "hex"), "PostgreSQL"],
    ["a PostgreSQL client", bytes("\0\0\0\u0029\0\u0003\0\0user\0bob"), "PostgreSQL"],
    ["an MQTT client", bytes("\u0010\u0018\0\u0004MQTT\u0004\u0002"), "MQTT"],
    ["an RDP client", Buffer.from("0300002b26e00000", "hex"), "RDP"],
    ["a Redis client", bytes("*1\r\n$4\r\nPING\r\n"), "Redis"],
    ["an SMTP banner", bytes("220 mail.example"), "FTP or SMTP"],
    ["a frame of ours", wireFrame("hello").subarray(0, 9), undefined],
    ["noise", Buffer.from("f3a1559b00ff12c4", "hex"), undefined],
    ["nothing", new Uint8Array(0), undefined]
  ]
  for (const [name, input, expected] of cases) {
    it(`sees ${name} as ${expected ?? "unknown"}`, () => {
      assert.strictEqual(describeForeignBytes(input), expected)
    })
  }
})
