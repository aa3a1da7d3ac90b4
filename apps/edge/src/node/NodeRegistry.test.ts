import { assert, it } from "@effect/vitest"
import { describe } from "vitest"
import { circuitLimits, FakeLink, record, status } from "../../test/fakeNodes.ts"
import { makeNodeRegistry, type NodeChange } from "./NodeRegistry.ts"
import { makeNodeStore } from "./NodeStore.ts"

const tower = record("tower", { alias: "gpu-1" })
const mac = record("mac")
const make = () =>
  makeNodeRegistry(
    makeNodeStore([tower, mac]),
    () => "rev",
    circuitLimits,
    () => 1000
  )

describe("the node registry", () => {
  it("holds a connected node under its id and its alias, and a lost one with when and why", () => {
    const registry = make()
    assert.strictEqual(registry.connected().length, 0)
    const link = new FakeLink()
    const entry = registry.attach(tower, link)
    assert.strictEqual(registry.find("tower"), entry)
    assert.strictEqual(registry.find("gpu-1"), entry)
    assert.deepStrictEqual(registry.connected(), [entry])
    registry.detach(link, "tower", "heartbeats missed for 15 s", true)
    assert.isUndefined(registry.find("gpu-1"))
    assert.strictEqual(registry.entry("gpu-1"), entry)
    assert.deepInclude(entry.lastDisconnect, {
      at: 1000,
      reason: "heartbeats missed for 15 s",
      mayResume: true
    })
  })

  it("hands out no array that changes later, and not its own", () => {
    const registry = make()
    const before = registry.connected()
    registry.attach(tower, new FakeLink())
    assert.strictEqual(before.length, 0)
  })

  it("ignores what an old link still has to say", () => {
    const registry = make()
    const old = new FakeLink()
    registry.attach(tower, old)
    const link = new FakeLink()
    const entry = registry.attach(tower, link)
    registry.setStatus(entry, old, status(["echo"]))
    assert.isUndefined(entry.status)
    registry.setSuspect(entry, old, true)
    assert.isFalse(entry.suspect)
    registry.detach(old, "tower", "late", true)
    assert.strictEqual(registry.find("tower")?.link, link)
    assert.strictEqual(registry.connected().length, 1)
  })

  it("tells its watchers every change, until they leave", () => {
    const registry = make()
    const changes: Array<NodeChange> = []
    const leave = registry.watch((_entry, change) => changes.push(change))
    const link = new FakeLink()
    const entry = registry.attach(mac, link)
    registry.setStatus(entry, link, status(["echo"]))
    registry.setSuspect(entry, link, true)
    registry.setSuspect(entry, link, true)
    registry.setSuspect(entry, link, false)
    registry.setCordoned(entry, true)
    entry.claim("mock", 0, 1)?.release()
    registry.detach(link, "mac", "gone", false)
    leave()
    registry.attach(mac, link)
    assert.deepStrictEqual(changes, ["attached", "status", "suspect", "alive", "cordon", "slot", "detached"])
  })

  it("keeps slots and the cordon over a link", () => {
    const registry = make()
    const link = new FakeLink()
    const entry = registry.attach(tower, link)
    entry.claim("mock", 0, 1)
    registry.setCordoned(entry, true)
    registry.detach(link, "tower", "reset", true)
    const again = registry.attach(tower, new FakeLink())
    assert.strictEqual(again.slots("mock").inUse, 1)
    assert.isTrue(again.cordoned)
  })
})
