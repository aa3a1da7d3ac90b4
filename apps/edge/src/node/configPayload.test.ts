import { fromBinary, toBinary } from "@bufbuild/protobuf"
import { assert, it } from "@effect/vitest"
import { NodeConfigPayloadSchema } from "@iop/platform-common/gen/iop/v1/node_config_pb"
import { Redacted } from "effect"
import { describe } from "vitest"
import { record } from "../../test/fakeNodes.ts"
import { buildConfigPayload } from "./configPayload.ts"
import type { AdapterRecord, NodeRecord } from "./NodeRecord.ts"

const withAdapter = (settings: AdapterRecord["settings"]): NodeRecord => ({
  ...record("n", { labels: { b: "2", a: "1" } }),
  adapters: [
    { name: settings.name, type: settings.type, slots: settings.slots, targets: settings.targets, settings }
  ]
})

const common = { slots: 2, targets: ["t"] }

describe("the configuration payload", () => {
  const all: ReadonlyArray<[string, AdapterRecord["settings"], unknown]> = [
    [
      "mock",
      { ...common, name: "m", type: "mock", seed: 7, scripts: { lorem: { tokens: 3 } } },
      { seed: 7n, scripts: { lorem: { tokens: 3 } } }
    ],
    [
      "openai",
      {
        ...common,
        name: "o",
        type: "openai",
        base_url: "http://127.0.0.1:8000/v1",
        api_key: Redacted.make("backend key"),
        headers: { "x-team": Redacted.make("us") }
      },
      { baseUrl: "http://127.0.0.1:8000/v1", apiKey: "backend key", headers: { "x-team": "us" } }
    ],
    [
      "ollama",
      {
        ...common,
        name: "l",
        type: "ollama",
        base_url: "http://127.0.0.1:11434",
        keep_alive: "5m",
        num_ctx: 8192
      },
      { baseUrl: "http://127.0.0.1:11434", keepAlive: "5m", numCtx: 8192 }
    ],
    [
      "cli",
      { ...common, name: "c", type: "cli", command: ["agent", "--print"], profiles: [] },
      { command: ["agent", "--print"] }
    ],
    [
      "custom",
      { ...common, name: "x", type: "custom", kind: "robot", settings: { arm: true } },
      { kind: "robot", settings: { arm: true } }
    ]
  ]
  for (const [name, settings, expected] of all) {
    it(`carries the settings of a ${name} adapter over the wire`, () => {
      const payload = buildConfigPayload(withAdapter(settings))
      const read = fromBinary(NodeConfigPayloadSchema, toBinary(NodeConfigPayloadSchema, payload))
      assert.strictEqual(read.adapters[0]?.settings.case, name)
      assert.deepInclude(read.adapters[0]?.settings.value, expected as object)
      assert.strictEqual(read.adapters[0]?.slots, 2)
      assert.deepStrictEqual(read.adapters[0]?.targets, ["t"])
    })
  }

  it("has a revision that changes with the settings and with nothing else", () => {
    const a = buildConfigPayload(record("n", { labels: { a: "1", b: "2" } }))
    const b = buildConfigPayload({ ...record("other"), labels: { b: "2", a: "1" } })
    const c = buildConfigPayload(record("n", { labels: { a: "1", b: "2" }, slots: 5 }))
    assert.match(a.revision, /^[0-9a-f]{16}$/)
    assert.strictEqual(a.revision, b.revision)
    assert.notStrictEqual(a.revision, c.revision)
  })
})
