import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { join, record } from "../../../test/fakeNodes.ts"
import { fixture } from "../../../test/runFixture.ts"
import { makeLocalClient } from "../../admin/localClient.ts"
import { NodeRegistry } from "../../node/NodeRegistry.ts"
import { Timers } from "../../node/Timers.ts"
import { RunService } from "../../run/RunService.ts"
import { VERSION } from "../version.ts"
import { dialable, startupScreen } from "./startupScreen.ts"

const at = (port: number, host = "127.0.0.1") => ({ host, port })

/** The screen of an edge with two nodes, of which one has joined. */
const screen = Effect.fnUntraced(
  function* (local: boolean, addresses: Parameters<typeof startupScreen>[0]["app"]["addresses"]) {
    const registry = yield* NodeRegistry
    join(registry, "fake-a", ["count", "echo", "embed", "fail-first", "fail-mid", "flood", "lorem", "never"])
    const edge = { registry, runs: yield* RunService, timers: yield* Timers }
    const client = (caller: string) => makeLocalClient(edge, caller)
    const app = { addresses, client, registry, drain: Effect.void }
    return startupScreen({ app, local, edgeId: "home", routable: true }, yield* client("test").nodes)
  },
  Effect.provide(fixture([record("fake-a", { labels: { tier: "fast" } }), record("fake-b")]))
)

describe("the first screen", () => {
  it.effect("is one screen of 80 columns, with where it listens, who has joined and what to try", () =>
    Effect.gen(function* () {
      const program = process.argv[1]
      process.argv[1] = "/somewhere/apps/edge/src/main.ts"
      const text = yield* Effect.ensuring(
        screen(true, { nodes: at(7610), http: at(7611), ops: at(7612) }),
        Effect.sync(() => {
          process.argv[1] = program ?? ""
        })
      )
      const lines = text.split("\n")
      assert.isAtMost(lines.length, 24)
      for (const line of lines) assert.isAtMost(line.length, 80, line)
      assert.match(text, /^edge \S+ "home"$/m)
      assert.match(text, /^ {2}nodes dial {2}127\.0\.0\.1:7610$/m)
      assert.match(text, /^fake-a {2}routable {2}0\/4 {4}tier=fast {2}mock: count, echo/m)
      assert.match(text, /^fake-b: has not connected since the edge started$/m)
      assert.match(text, /console --connect http:\/\/127\.0\.0\.1:7611$/m)
      assert.match(text, /edge nodes --json$/m)
      assert.match(text, /curl -s http:\/\/127\.0\.0\.1:7612\/metrics$/m)
    })
  )

  it.effect("says addresses that can be called: IPv6 in brackets, loopback for all addresses", () =>
    Effect.gen(function* () {
      const text = yield* screen(false, {
        nodes: at(1, "0.0.0.0"),
        http: at(2, "::1"),
        ops: at(3, "0.0.0.0")
      })
      assert.match(text, /http {8}http:\/\/\[::1\]:2$/m)
      assert.match(text, /ops {9}http:\/\/127\.0\.0\.1:3$/m)
      assert.notInclude(text, "Try")
    })
  )
})

describe("where nodes dial", () => {
  const address = (address: string, family: "IPv4" | "IPv6", internal = false) => ({
    address,
    netmask: "",
    mac: "",
    cidr: null,
    internal,
    ...(family === "IPv6" ? { family, scopeid: 0 } : { family })
  })
  const interfaces = {
    lo: [address("127.0.0.1", "IPv4", true), address("::1", "IPv6", true)],
    eth0: [address("fd00::7", "IPv6"), address("fe80::1", "IPv6"), address("192.168.1.2", "IPv4")],
    wlan0: [address("169.254.3.4", "IPv4"), address("10.0.0.5", "IPv4")]
  }

  it("is the address itself, or what others reach this machine by when it listens on all", () => {
    assert.deepStrictEqual(dialable(at(7610, "10.0.0.5"), interfaces), ["10.0.0.5:7610"])
    assert.deepStrictEqual(dialable(at(7610, "::1"), interfaces), ["[::1]:7610"])
    assert.deepStrictEqual(dialable(at(7610, "0.0.0.0"), interfaces), ["192.168.1.2:7610", "10.0.0.5:7610"])
    assert.deepStrictEqual(dialable(at(7610, "::"), interfaces), [
      "192.168.1.2:7610",
      "10.0.0.5:7610",
      "[fd00::7]:7610"
    ])
    assert.deepStrictEqual(dialable(at(7610, "0.0.0.0"), { lo: interfaces.lo }), ["127.0.0.1:7610"])
  })

  it("is no list without end", () => {
    const many = { eth0: Array.from({ length: 9 }, (_, index) => address(`10.0.0.${index}`, "IPv4")) }
    assert.strictEqual(dialable(at(1, "0.0.0.0"), many).length, 3)
  })
})

it("the version is that of the package", () => {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL("../../../package.json", import.meta.url), "utf8")
  )
  assert.strictEqual(VERSION, manifest.version)
})
