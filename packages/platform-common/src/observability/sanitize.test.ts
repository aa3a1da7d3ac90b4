import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { boundedText } from "./sanitize.ts"

const hostile = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

describe("boundedText", () => {
  it("OB1 writes line breaks, escape sequences and direction marks out", () => {
    assert.strictEqual(
      boundedText("a\nb\r\u001b[31mc\u0000\u2028\u202ed\u0085", 100),
      "a\\u{a}b\\u{d}\\u{1b}[31mc\\u{0}\\u{2028}\\u{202e}d\\u{85}"
    )
    assert.strictEqual(boundedText('plain "text" ✓ 😀 é', 100), 'plain "text" ✓ 😀 é')
  })

  it("OB1 cuts a megabyte and keeps pairs whole", () => {
    assert.strictEqual(boundedText("x".repeat(1024 * 1024), 5), "xxxxx…")
    assert.strictEqual(boundedText("ab😀cd", 3), "ab…")
    assert.strictEqual(boundedText("ab😀cd", 4), "ab😀…")
    assert.strictEqual(boundedText("abcd", 4), "abcd")
    assert.strictEqual(boundedText("lone \ud83d", 10), "lone \\u{d83d}")
  })

  it.effect.prop("OB1 never holds a control character and is bounded", { text: Schema.String }, ({ text }) =>
    Effect.sync(() => {
      for (const max of [0, 1, 7, 4096]) {
        const bounded = boundedText(text, max)
        assert.isFalse(hostile.test(bounded))
        assert.isAtMost(bounded.length, max * 8 + 1)
      }
    })
  )
})
