import { assert, it } from "@effect/vitest"
import { describe } from "vitest"
import { record } from "../../test/fakeNodes.ts"
import { digestSecret, makeNodeStore, NodeSeedError } from "./NodeStore.ts"

const problems = (...records: Parameters<typeof makeNodeStore>): ReadonlyArray<string> => {
  try {
    makeNodeStore(...records)
    return []
  } catch (error) {
    if (error instanceof NodeSeedError) return error.problems
    throw error
  }
}

describe("the node store", () => {
  it("finds by id, by alias and by token", () => {
    const store = makeNodeStore([record("tower", { alias: "gpu-1" }), record("mac")])
    assert.strictEqual(store.findById("tower")?.alias, "gpu-1")
    assert.isUndefined(store.findById("gpu-1"))
    assert.strictEqual(store.findByName("gpu-1")?.id, "tower")
    assert.strictEqual(store.findByToken("token of mac")?.id, "mac")
    assert.isUndefined(store.findByToken("token of nobody"))
    assert.isUndefined(store.findByToken(""))
  })

  it("CF1 CF2 CF3 refuses records that can't live together, names both and prints no token", () => {
    const shared = digestSecret("a secret token")
    const found = problems([
      { ...record("a"), tokenDigest: shared },
      { ...record("b"), tokenDigest: shared },
      record("c", { alias: "a" }),
      record("d", { alias: "x" }),
      record("e", { alias: "x" }),
      record("d", { alias: "y" }),
      { ...record("f"), tokenDigest: digestSecret("") }
    ])
    assert.deepStrictEqual(found, [
      "nodes a and b have the same token",
      "nodes a and c share the name a; an id or alias must mean one node",
      "nodes d and e share the name x; an id or alias must mean one node",
      "two nodes have the id d",
      "nodes d and d share the name d; an id or alias must mean one node",
      "nodes d and d have the same token",
      "node f has an empty token"
    ])
    assert.isFalse(found.join().includes("secret"))
  })

  it("can't be changed from outside", () => {
    const records = [record("a")]
    const store = makeNodeStore(records)
    records.push(record("b"))
    assert.strictEqual(store.records.length, 1)
    assert.throws(() => (store.records as Array<unknown>).push(record("c")))
  })
})
