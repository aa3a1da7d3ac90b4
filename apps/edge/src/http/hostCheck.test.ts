import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { hostAllowed, originAllowed } from "./hostCheck.ts"

/** A request as it came in at 192.168.1.5:7611, or at the given address. */
const request = (
  headers: Readonly<Record<string, string>>,
  { address = "192.168.1.5", version = "1.1" } = {}
): IncomingMessage => {
  const socket = new Socket()
  Object.defineProperty(socket, "localAddress", { value: address })
  Object.defineProperty(socket, "localPort", { value: 7611 })
  const message = new IncomingMessage(socket)
  Object.assign(message.headers, headers)
  message.httpVersion = version
  message.httpVersionMajor = Number(version.split(".")[0])
  message.httpVersionMinor = Number(version.split(".")[1])
  return message
}

const rule = { host: "0.0.0.0", names: ["edge.home.arpa"] }

describe("Host", () => {
  const allowed = [
    "192.168.1.5:7611",
    "localhost:7611",
    "LOCALHOST:7611",
    "edge.home.arpa",
    "edge.home.arpa:443",
    "Edge.Home.Arpa"
  ]
  for (const host of allowed) {
    it(`lets ${host} in`, () => {
      assert.isTrue(hostAllowed(request({ host }), rule))
    })
  }
  const refused = [
    "evil.example:7611",
    "192.168.1.5:7612",
    "192.168.1.5",
    "192.168.1.6:7611",
    "localhost",
    "edge.home.arpa.evil.example",
    "edge.home.arpa@evil.example",
    "",
    "localhost:7611:7611",
    "[::1]:7611"
  ]
  for (const host of refused) {
    it(`keeps ${JSON.stringify(host)} out`, () => {
      assert.isFalse(hostAllowed(request({ host }), rule))
    })
  }

  it("knows IPv6 and IPv4 that comes mapped into it", () => {
    assert.isTrue(hostAllowed(request({ host: "[::1]:7611" }, { address: "::1" }), rule))
    assert.isTrue(hostAllowed(request({ host: "127.0.0.1:7611" }, { address: "::ffff:127.0.0.1" }), rule))
  })

  it("knows the name that the listener itself was given", () => {
    assert.isTrue(hostAllowed(request({ host: "tower:7611" }), { host: "tower", names: [] }))
  })

  it("may be missing in HTTP/1.0 alone, which no browser speaks", () => {
    assert.isTrue(hostAllowed(request({}, { version: "1.0" }), rule))
    assert.isFalse(hostAllowed(request({}), rule))
  })
})

describe("Origin", () => {
  it("is none, or the listener's own", () => {
    assert.isTrue(originAllowed(request({ host: "localhost:7611" })))
    assert.isTrue(originAllowed(request({ host: "localhost:7611", origin: "http://localhost:7611" })))
    assert.isTrue(originAllowed(request({ host: "edge.home.arpa", origin: "https://edge.home.arpa" })))
  })
  for (const origin of [
    "http://evil.example",
    "http://localhost:3000",
    "null",
    "file://",
    "localhost:7611",
    ""
  ]) {
    it(`is not ${JSON.stringify(origin)}`, () => {
      assert.isFalse(originAllowed(request({ host: "localhost:7611", origin })))
    })
  }
})
