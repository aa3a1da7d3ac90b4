import { assert, describe, it } from "@effect/vitest"
import { connectionLimits, divideDescriptors } from "./descriptorLimit.ts"

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
