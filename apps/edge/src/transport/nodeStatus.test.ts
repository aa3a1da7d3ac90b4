import { create } from "@bufbuild/protobuf"
import { AdapterState, NodeStatusSchema } from "@iop/platform-common/gen/iop/v1/status_pb"
import { expect, it } from "vitest"
import { record } from "../../test/fakeNodes.ts"
import { readNodeStatus } from "./nodeStatus.ts"

it("keeps what the record knows, counts and leaves out the rest", () => {
  const message = create(NodeStatusSchema, {
    configRevision: "abc",
    draining: true,
    adapters: [
      {
        name: "mock",
        state: AdapterState.READY,
        targets: [
          { name: "echo", capabilities: ["chat"], contextLength: 4096 },
          { name: "", capabilities: [] },
          { name: "two\nlines" },
          { name: "x".repeat(257) }
        ]
      },
      { name: "foreign", state: AdapterState.READY, targets: [{ name: "a" }] }
    ]
  })
  const { status, ignored } = readNodeStatus(record("tower"), message)
  expect(ignored).toBe(4)
  expect(status.revision).toBe("abc")
  expect(status.draining).toBe(true)
  expect([...status.adapters.values()]).toEqual([
    {
      name: "mock",
      state: "ready",
      reason: "",
      targets: [{ name: "echo", capabilities: ["chat"], contextLength: 4096 }]
    }
  ])
})

it("offers only the targets that the record lists, where it lists some", () => {
  const message = create(NodeStatusSchema, {
    adapters: [{ name: "mock", state: AdapterState.READY, targets: [{ name: "a" }, { name: "b" }] }]
  })
  const { status, ignored } = readNodeStatus(record("tower", { targets: ["b", "c"] }), message)
  expect(status.adapters.get("mock")?.targets.map((target) => target.name)).toEqual(["b"])
  expect(ignored).toBe(0)
})

it("OB1 a reason is one bounded line, whatever the node wrote", () => {
  const message = create(NodeStatusSchema, {
    adapters: [
      {
        name: "mock",
        state: AdapterState.UNAVAILABLE,
        reason: `\u001b[2J\nlevel=fatal ${"x".repeat(1_000_000)}`
      }
    ]
  })
  const reason = readNodeStatus(record("tower"), message).status.adapters.get("mock")?.reason ?? ""
  expect(reason.startsWith("\\u{1b}[2J\\u{a}level=fatal xxx")).toBe(true)
  expect(reason.length).toBeLessThan(600)
})

it("a state of a newer version is not ready", () => {
  const message = create(NodeStatusSchema, { adapters: [{ name: "mock", state: 9 as AdapterState }] })
  expect(readNodeStatus(record("tower"), message).status.adapters.get("mock")).toMatchObject({
    state: "unavailable",
    reason: "the node reports state 9, which this edge does not know"
  })
})
