import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { parse } from "./testing/problemsOf.ts"

/** Mixed, so that no piece of one looks like a word. */
const Secret = Schema.String.check(Schema.isPattern(/^([A-Z][0-9]){8,12}$/u))

/** A file with a secret in every place that may hold one. */
const template = (secret: string) => `
edge: { id: home }
listen: { nodes: { host: 127.0.0.1 }, http: { port: 7611 } }
api_keys:
  - name: laptop
    key: ${secret}a
  - { name: phone, key: "\${KEY}" }
  - { name: file, key_file: key }
nodes:
  - id: tower
    alias: gpu-1
    token: ${secret}b
    labels: { gpu: big }
    runtime: { slots: 4, drain_timeout: 30s }
    adapters:
      - { name: llama, type: openai, base_url: "http://user:${secret}@host", api_key: ${secret}c }
      - name: coder
        type: cli
        profiles: [{ name: x, command: [run], env: { TOKEN: ${secret}d } }]
        targets: [x]
  - { id: mac, token: "\${TOKEN}", adapters: [{ name: o, type: openai, base_url: "\${URL}", headers: { A: ${secret}e } }] }
  - { id: file, token_file: token }
routes:
  - { model: fast, adapter: llama, target: x, labels: { gpu: big } }
tracing: { otlp_url: "http://${secret}:x@host" }
runs: { queue_timeout: 30s, history: "\${NUMBER}" }
`

/** Everything that is said about a text, and all that a thrown or printed result could show. */
const said = (text: string, secret: string): string => {
  const result = parse(text, {
    env: {
      KEY: `${secret}f`,
      TOKEN: `${secret}g`,
      URL: `http://u:${secret}@h`,
      NUMBER: secret,
      IOP_EDGE_LOG_LEVEL: secret
    },
    files: { "/etc/iop/key": `${secret}h`, "/etc/iop/token": `${secret} i` }
  })
  return Result.isFailure(result)
    ? `${result.failure.message}\n${JSON.stringify(result.failure)}\n${String(result.failure.stack)}`
    : JSON.stringify(result.success)
}

const assertUnsaid = (secret: string, words: string, text: string) => {
  for (let start = 0; start + 6 <= secret.length; start++) {
    assert.notInclude(words, secret.slice(start, start + 6), text)
  }
}

const Position = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1400 }))
const Edit = Schema.Struct({
  at: Position,
  remove: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })),
  insert: Schema.Literals([
    "",
    "",
    ":",
    ",",
    " ",
    "\n",
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    "#",
    "- ",
    ": ",
    "!",
    "&",
    "*",
    "%",
    "|",
    ">",
    "\t",
    "x"
  ])
})

const arbitrary = { runs: 400 }

describe("CF14 secrets stay secret", () => {
  it.effect.prop("in a file with mistakes all over it", { secret: Secret }, ({ secret }) =>
    Effect.sync(() => {
      const broken = template(secret)
        .replace("alias: gpu-1", "alias: mac")
        .replace(`${secret}a`, `${secret}b`)
        .replace("slots: 4", "slots: four")
        .replace("adapter: llama", "adapter: lama")
      const words = said(broken, secret)
      assert.isAtLeast(words.split("edge.yaml:").length, 8)
      assertUnsaid(secret, words, broken)
    })
  )

  it.effect.prop(
    "whatever three typing errors do to a file",
    { secret: Secret, edits: Schema.Tuple([Edit, Edit, Edit]) },
    ({ edits, secret }) =>
      Effect.sync(() => {
        let text = template(secret)
        for (const { at, insert, remove } of edits)
          text = text.slice(0, at) + insert + text.slice(at + remove)
        assertUnsaid(secret, said(text, secret), text)
      }),
    { arbitrary, timeout: 60_000 }
  )

  it("a missing or misplaced colon, quote or comma does not make a name of a secret", () => {
    const secret = "A1B2C3D4E5F6"
    for (const text of [
      `nodes:\n  - id: tower\n    token ${secret}\n`,
      `nodes:\n  - { id: a, token: b, ${secret} }\n`,
      `nodes:\n  - { id: a, token: b, ${secret}: x, ${secret}: y, labels: { ${secret}: 5 } }\n`,
      `nodes:\n  - { id: a, token: b, adapters: [{ name: a, type: cli, profiles: [{ name: a, command: [a], env: { T:, ${secret} } }] }] }\n`,
      `nodes:\n  - id: a\n    token: t\n    adapters:\n      - name: o\n        type: openai\n        api_key ${secret}\n`,
      `nodes:\n  - id: a\n    token_file: x\n     ${secret}\n`,
      `nodes:\n  - id: a\n    token: t\n    runtime:\n      drain_timeout: 30s\n       ${secret}\n`,
      `nodes: [{ id: a, token: t }]\nroutes:\n  - model: m\n     ${secret}\n    adapter: x\n    target: y\n`
    ]) {
      const words = said(text, secret)
      assert.include(words, "edge.yaml:", text)
      assertUnsaid(secret, words, text)
    }
  })
})
