import { assert, describe, it } from "@effect/vitest"
import { safeLine, safeText } from "./safeText.ts"

describe("text for a terminal", () => {
  it("keeps what people write, line breaks and tabs included", () => {
    const text = "Grüße, 世界 👩‍🚀\n\tindented\n"
    assert.strictEqual(safeText(text), text)
  })

  it("OB1 lets no escape sequence through", () => {
    assert.strictEqual(safeText("\u001b[31mred\u001b]0;title\u0007"), "␛[31mred␛]0;title␇")
    assert.strictEqual(safeText("\u009b31m\u0090"), "\ufffd31m\ufffd")
    assert.strictEqual(safeText("over\rwritten\b\u007f"), "overwritten␈␡")
  })

  it("lets nothing turn the direction of the text around", () => {
    assert.strictEqual(safeText("a\u202eb\u2066c\u200f"), "a\ufffdb\ufffdc\ufffd")
  })

  it("is one line where one line is meant", () => {
    assert.strictEqual(safeLine("a\n\n\tb\r\nc"), "a b c")
  })
})
