import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { describe } from "vitest"
import { entry, FakeLink, status } from "../../test/fakeNodes.ts"
import type { NodeEntry } from "./NodeEntry.ts"
import { couldServe, describeReason, type SelectionReason, select } from "./selection.ts"

const need = { adapter: "mock", target: "echo" }
const clock = { now: 100_000, resumeGraceMs: 30_000 }

/** A node that can take the run. */
const ready = (id: string, options: Parameters<typeof entry>[1] = {}): NodeEntry => {
  const node = entry(id, options)
  node.link = new FakeLink()
  node.status = status(["echo"])
  return node
}

const changed = (id: string, change: (node: NodeEntry) => void): NodeEntry => {
  const node = ready(id)
  change(node)
  return node
}

describe("selection", () => {
  const cases: ReadonlyArray<[SelectionReason, NodeEntry, RegExp]> = [
    ["no_adapter", ready("n", { adapter: "other" }), /has no adapter mock/],
    ["no_target", ready("n", { targets: ["lorem"] }), /does not offer echo/],
    [
      "no_target",
      changed("n", (n) => {
        n.status = status(["lorem"])
      }),
      /does not offer echo/
    ],
    ["offline", entry("n"), /has not connected since the edge started/],
    [
      "offline",
      changed("n", (n) => {
        n.link = undefined
        n.lastDisconnect = { at: 0, time: new Date(0), reason: "heartbeats missed for 15 s", mayResume: true }
      }),
      /offline for 100 s: heartbeats missed for 15 s/
    ],
    [
      "reconnecting",
      changed("n", (n) => {
        n.link = undefined
        n.lastDisconnect = { at: 95_000, time: new Date(0), reason: "reset", mayResume: true }
      }),
      /link lost 5 s ago: reset; it may come back/
    ],
    [
      "suspect",
      changed("n", (n) => {
        n.suspect = true
      }),
      /misses heartbeats/
    ],
    [
      "config_pending",
      changed("n", (n) => {
        n.status = undefined
      }),
      /not applied its configuration/
    ],
    [
      "config_pending",
      changed("n", (n) => {
        n.status = status(["echo"], { revision: "older" })
      }),
      /not applied/
    ],
    [
      "node_draining",
      changed("n", (n) => {
        n.status = status(["echo"], { draining: true })
      }),
      /is stopping/
    ],
    [
      "adapter_starting",
      changed("n", (n) => {
        n.status = status(["echo"], { state: "starting", reason: "loading" })
      }),
      /is starting: loading/
    ],
    [
      "adapter_degraded",
      changed("n", (n) => {
        n.status = status(["echo"], { state: "degraded", reason: "slow disk" })
      }),
      /is degraded: slow disk/
    ],
    [
      "adapter_unavailable",
      changed("n", (n) => {
        n.status = status(["echo"], { state: "unavailable", reason: "connection refused" })
      }),
      /is unavailable: connection refused/
    ],
    [
      "cordoned",
      changed("n", (n) => {
        n.cordoned = true
      }),
      /is cordoned/
    ],
    [
      "circuit_open",
      changed("n", (n) => {
        for (let i = 0; i < 5; i++) n.circuit("mock")?.failedFast(99_000, false, "boom")
      }),
      /failed fast too often, is tried again in 9 s: boom/
    ],
    [
      "circuit_probing",
      changed("n", (n) => {
        for (let i = 0; i < 5; i++) n.circuit("mock")?.failedFast(80_000, false, "boom")
        n.claim("mock", 100_000, 1)
      }),
      /a single run tries it now/
    ],
    [
      "no_free_slot",
      changed("n", (n) => {
        for (let i = 0; i < 4; i++) n.claim("mock", 0, i)
      }),
      /all slots are taken \(4 of 4 slots in use\)/
    ]
  ]
  for (const [reason, node, message] of cases) {
    it(`RG13 OB7 says ${reason} (${message.source})`, () => {
      const { chosen, reasons } = select([node], need, clock)
      assert.isUndefined(chosen)
      assert.deepStrictEqual(reasons, [reason])
      assert.match(describeReason(node, need, reason, clock), message)
    })
  }

  it("counts the slots of the whole node too", () => {
    const node = ready("n", { nodeSlots: 1 })
    node.claim("mock", 0, 1)
    assert.deepStrictEqual(select([node], need, clock).reasons, ["no_free_slot"])
  })

  it("respects labels and nodes that were tried", () => {
    const a = ready("a", { labels: { gpu: "big", room: "attic" } })
    const b = ready("b", { labels: { gpu: "small" } })
    assert.deepStrictEqual(select([a, b], { ...need, labels: { gpu: "big" } }, clock).reasons, [
      "chosen",
      "labels_differ"
    ])
    assert.deepStrictEqual(select([a, b], { ...need, excluded: new Set(["a"]) }, clock).reasons, [
      "already_tried",
      "chosen"
    ])
  })

  it("prefers the node of the session while it has a free slot", () => {
    const a = ready("a")
    const b = ready("b", { slots: 2 })
    b.claim("mock", 0, 1)
    assert.strictEqual(select([a, b], need, clock).chosen, a)
    assert.strictEqual(select([a, b], { ...need, preferred: "b" }, clock).chosen, b)
    b.claim("mock", 0, 2)
    assert.strictEqual(select([a, b], { ...need, preferred: "b" }, clock).chosen, a)
  })

  it("takes the least loaded by slots in use / slots", () => {
    const a = ready("a", { slots: 2 })
    const b = ready("b", { slots: 8 })
    a.claim("mock", 0, 1)
    for (let i = 0; i < 3; i++) b.claim("mock", 0, 2 + i)
    assert.strictEqual(select([a, b], need, clock).chosen, b)
  })

  it("takes turns among equals", () => {
    const nodes = ["a", "b", "c"].map((id) => ready(id))
    const order = Array.from({ length: 6 }, (_, turn) => {
      const { chosen } = select(nodes, need, clock)
      chosen?.claim("mock", 0, turn + 1)?.release()
      return chosen?.record.alias
    })
    assert.deepStrictEqual(order, ["a", "b", "c", "a", "b", "c"])
  })

  it.effect.prop(
    "chooses a node with a free slot whenever there is one, and the least loaded",
    { use: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 }))) },
    ({ use }) =>
      Effect.sync(() => {
        const nodes = use.map((taken, i) => {
          const node = ready(`n${i}`)
          for (let k = 0; k < taken; k++) node.claim("mock", 0, k)
          return node
        })
        const { chosen } = select(nodes, need, clock)
        if (use.some((taken) => taken < 4)) {
          assert.strictEqual(chosen?.slots("mock").inUse, Math.min(...use))
        } else assert.isUndefined(chosen)
      })
  )

  it("knows what a record could serve", () => {
    assert.isTrue(couldServe(entry("n"), need))
    assert.isFalse(couldServe(entry("n", { targets: ["lorem"] }), need))
    assert.isFalse(couldServe(entry("n"), { ...need, labels: { gpu: "big" } }))
    assert.isFalse(
      couldServe(
        changed("n", (n) => {
          n.status = status(["lorem"])
        }),
        need
      )
    )
    assert.isTrue(
      couldServe(
        changed("n", (n) => {
          n.status = status([], { state: "unavailable" })
        }),
        need
      )
    )
  })
})

describe("a slot", () => {
  it("is given back once, however often it is released", () => {
    const node = entry("n", { slots: 2 })
    const first = node.claim("mock", 0, 1)
    node.claim("mock", 0, 2)
    assert.isUndefined(node.claim("mock", 0, 3))
    first?.release()
    first?.release()
    assert.deepStrictEqual(node.slots("mock"), { total: 2, inUse: 1 })
    assert.strictEqual(node.slotsInUse, 1)
  })
})
