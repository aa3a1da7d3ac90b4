import { assert, describe, it } from "@effect/vitest"
import { connectionLimits, descriptorShortage, divideDescriptors } from "./descriptorLimit.ts"

describe("connections derived from the descriptor limit", () => {
  it("RS1 stay below it together", () => {
    for (const descriptors of [128, 256, 1024, 65_536]) {
      const limits = divideDescriptors(descriptors)
      const sum = (limits.nodes ?? 0) + (limits.http ?? 0) + (limits.ops ?? 0)
      assert.isBelow(sum, descriptors)
      assert.isAbove(sum, descriptors / 2)
      assert.isAbove(limits.nodes ?? 0, limits.http ?? 0)
    }
  })

  it("leave a few for each listener even when there is almost nothing", () => {
    assert.deepStrictEqual(divideDescriptors(16), { descriptors: 16, nodes: 4, http: 4, ops: 4 })
  })

  it("RS2 are too few for a large configuration, which is said with both numbers", () => {
    const limits = divideDescriptors(256)
    assert.isUndefined(descriptorShortage(104, limits))
    assert.strictEqual(
      descriptorShortage(105, limits),
      "warning: the configuration has 105 nodes, but this process may open 256 files, which is enough for 104 of them; raise the limit (ulimit -n)"
    )
    assert.isUndefined(descriptorShortage(105, divideDescriptors(undefined)))
  })

  it("are no limits where the system says nothing", () => {
    assert.deepStrictEqual(divideDescriptors(undefined), {
      descriptors: undefined,
      nodes: undefined,
      http: undefined,
      ops: undefined
    })
  })

  it.runIf(process.platform === "linux")("are read from this process", () => {
    assert.isAbove(connectionLimits().descriptors ?? 0, 0)
  })
})
