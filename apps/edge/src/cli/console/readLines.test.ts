import { Readable } from "node:stream"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { describe } from "vitest"
import { readLines } from "./readLines.ts"

const linesOf = (chunks: ReadonlyArray<Uint8Array | string>) =>
  Effect.promise(() => Array.fromAsync(readLines(Readable.from(chunks, { objectMode: true }))))

describe("the lines of a pipe", () => {
  it.effect("end at a line feed and at nothing else", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* linesOf(["one\r\ntwo \u2028 still two\u2029\n\nlast"]), [
        "one",
        "two \u2028 still two\u2029",
        "",
        "last"
      ])
    })
  )

  it.effect.prop(
    "are the same however the bytes are cut",
    {
      lines: Schema.Array(Schema.String),
      size: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }))
    },
    ({ lines, size }) =>
      Effect.gen(function* () {
        const wanted = lines.map((line) => `${line.toWellFormed().replace(/[\r\n]/g, "")}.`)
        const bytes = new TextEncoder().encode(wanted.map((line) => `${line}\n`).join(""))
        const chunks: Array<Uint8Array> = []
        for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
        assert.deepStrictEqual(yield* linesOf(chunks), wanted)
      })
  )

  it.effect("end when the input is destroyed", () =>
    Effect.promise(async () => {
      const input = new Readable({ read() {} })
      const lines = readLines(input)
      input.push("one\n")
      assert.strictEqual((await lines.next()).value, "one")
      const next = lines.next()
      input.destroy()
      assert.isTrue((await next).done)
    })
  )
})
