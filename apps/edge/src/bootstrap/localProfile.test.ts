import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { makeNodeStore, toRecord } from "../node/NodeStore.ts"
import { localProfile } from "./localProfile.ts"

describe("the local profile", () => {
  it("listens on loopback alone, on the usual ports unless told otherwise", () => {
    const { listen } = localProfile({}).config
    assert.deepStrictEqual(
      [listen.nodes, listen.http, listen.ops].map(({ host, port }) => `${host}:${port}`),
      ["127.0.0.1:7610", "127.0.0.1:7611", "127.0.0.1:7612"]
    )
    const moved = localProfile({ nodes: 0, http: 8080 }).config.listen
    assert.deepStrictEqual([moved.nodes.port, moved.http.port, moved.ops.port], [0, 8080, 7612])
  })

  it("has two fake nodes that differ in tier and slots", () => {
    const { config, nodes } = localProfile({})
    assert.deepStrictEqual(
      config.nodes.map((node) => [node.id, node.labels, node.adapters[0]?.slots]),
      [
        ["fake-a", { tier: "fast" }, 4],
        ["fake-b", { tier: "slow" }, 2]
      ]
    )
    const store = makeNodeStore(config.nodes.map(toRecord))
    assert.deepStrictEqual(
      nodes.map(({ token }) => store.findByToken(token)?.id as string | undefined),
      ["fake-a", "fake-b"]
    )
  })

  it("has other tokens at each start, and shows none of them", () => {
    const first = localProfile({})
    const second = localProfile({})
    const tokens = [...first.nodes, ...second.nodes].map(({ token }) => token)
    assert.strictEqual(new Set(tokens).size, 4)
    for (const token of tokens) assert.isAtLeast(token.length, 43)
    const [node] = first.config.nodes
    assert.strictEqual(node?.token && Redacted.value(node.token), tokens[0])
    assert.notInclude(JSON.stringify(first.config), tokens[0] ?? "")
  })
})
