// The README's example is a node that works.

import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { tcpEdge } from "./testkit/scriptedEdge.ts"
import { textDelta } from "./textDelta.ts"

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const EXAMPLE = pathOf("../examples/shoutNode.ts")

it("the README shows the example as it is", () => {
  const readme = readFileSync(pathOf("../README.md"), "utf8")
  assert.include(readme, `\`\`\`ts\n${readFileSync(EXAMPLE, "utf8")}\`\`\``)
})

it.live("the example registers, runs and drains", () =>
  Effect.gen(function* () {
    const edge = yield* tcpEdge()
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [EXAMPLE, edge.host, String(edge.port)], {
          stdio: "ignore",
          env: { PATH: process.env.PATH, IOP_NODE_TOKEN: "secret" }
        })
      ),
      (started) => Effect.sync(() => started.kill("SIGKILL"))
    )
    const link = yield* edge.link
    const request = yield* link.accept({
      config: {
        adapters: [
          {
            name: "shout",
            slots: 1,
            targets: ["loud"],
            settings: { case: "custom", value: { kind: "shout", settings: { mark: "!!" } } }
          }
        ]
      }
    })
    assert.strictEqual(request.token, "secret")
    yield* link.ready
    assert.deepStrictEqual(yield* link.run({ adapter: "shout", target: "loud", input: "hear me" }).toEnd, [
      { type: "started" },
      textDelta("HEAR!! "),
      textDelta("ME!! "),
      { type: "completed", finishReason: "stop" }
    ])
    const [refused] = yield* link.run({ adapter: "shout", target: "loud", input: "whisper it" }).toEnd
    assert.deepInclude(refused, { type: "failed", code: "invalid_input", message: "I can only shout" })
    child.kill("SIGTERM")
    yield* link.goodbye
  })
)
