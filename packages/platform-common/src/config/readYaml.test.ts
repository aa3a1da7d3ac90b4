import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { bombs } from "./testing/bombs.ts"
import { errorsOf } from "./testing/problemsOf.ts"

const run = promisify(execFile)
const script = new URL("testing/parseBomb.ts", import.meta.url).pathname

describe("readYaml", () => {
  it("CF7 duplicate keys, tabs and a second document are refused with their place", () => {
    const node = "nodes: [{ id: a, token: t }]\n"
    assert.deepStrictEqual(errorsOf(`edge: { id: a }\n${node}edge: { id: b }\n`), [
      `3:1  edge: this key is given twice, first in line 1`
    ])
    assert.deepStrictEqual(errorsOf("nodes: [{ id: a, token: t, id: b }]\n"), [
      `1:28  nodes[0].id: this key is given twice, first in line 1`
    ])
    assert.deepStrictEqual(errorsOf(`${node}edge:\n\tid: a\n`), [
      "3:1  a tab in the indentation; YAML allows spaces only"
    ])
    assert.deepStrictEqual(errorsOf(`${node}---\n${node}`), [
      "2:1  a second document starts here (---); a configuration is one document"
    ])
    assert.deepStrictEqual(errorsOf(`---\n${node}...\n`), [])
  })

  it("CF7 a line that is indented wrongly is named, and nothing that only follows from it", () => {
    const errors = (...lines: ReadonlyArray<string>) => errorsOf(`nodes:\n${lines.join("\n")}\n`)
    const between = (spaces: number, columns: string) =>
      `indented by ${spaces} spaces, the lines before by ${columns}; what belongs to one map or list starts in the same column`
    const tooFar = (spaces: number, before: number) =>
      `indented by ${spaces} spaces, further than the line before, which has its value already; keys of one map start in the same column, here after ${before} spaces`
    assert.deepStrictEqual(errors("  - id: a", "   token: sekrit"), [`3:4  ${between(3, "2 or 4")}`])
    assert.deepStrictEqual(errors("  - id: a", "    labels:", "      a: b", "     c: d"), [
      `5:6  ${between(5, "4 or 6")}`
    ])
    assert.deepStrictEqual(errors("  - id: a", "     token: sekrit"), [`3:6  ${tooFar(5, 4)}`])
    assert.deepStrictEqual(errors("  - id: a", "    token: sekrit", "", "       x: y"), [
      `5:8  ${tooFar(7, 4)}`
    ])
    assert.deepStrictEqual(errors("  - id: a", "    adapters: []", "\t  - name: m"), [
      "4:1  a tab in the indentation; YAML allows spaces only"
    ])
  })

  it("CF7 a missing sign is not taken for an indentation", () => {
    assert.deepStrictEqual(errorsOf('nodes:\n  - id: "a\n    token: t\n'), [
      "4:1  a character is missing here: a closing quote or bracket, a colon, a comma or a space"
    ])
    assert.deepStrictEqual(errorsOf("edge: id: a\n"), [
      "1:7  a key and its map or list cannot start on one line like this; is a line break or an indentation missing?"
    ])
  })

  it("CF9 custom tags are refused, the tags of YAML itself are not", () => {
    assert.deepStrictEqual(
      errorsOf(
        "a: !!js/function 'return 1'\nb: !include x\nc: !<tag:x> {}\nd: !!binary aGk=\ne: !!set {a}\n"
      ),
      ["1:4", "2:4", "3:4", "4:13", "5:10"].map(
        (place) => `${place}  a tag (!name) that is not allowed here; remove it`
      )
    )
    assert.deepStrictEqual(errorsOf("nodes: [{ id: !!str 7, token: !!str 12345 }]\n"), [])
  })

  it("CF14 messages about broken YAML never show the source", () => {
    for (const text of [
      'token: "sekrit',
      "token: 'sekrit\n",
      "token: @sekrit",
      "token: `sekrit`",
      "token: %sekrit",
      'token: "\\sekrit"',
      "token: [sekrit",
      "token: {sekrit: sekrit",
      "sekrit\nsekrit: a\n sekrit",
      "- sekrit\nsekrit: 1",
      "token: sekrit: sekrit",
      "token: &sekrit *sekrit",
      "token: *sekrit",
      "token: !sekrit x",
      "%sekrit\n---\na: 1",
      "token: |sekrit\n x",
      "a: b\n\tsekrit: c",
      "token: sekrit\n---\nsekrit",
      "? [sekrit]\n: sekrit",
      "sekrit"
    ]) {
      const errors = errorsOf(text)
      assert.isAtLeast(errors.length, 1, text)
      for (const error of errors) {
        assert.match(error, /^\d+:\d+ {2}/, text)
        if (!text.includes("sekrit: sekrit") && !text.includes("a: b"))
          assert.notInclude(error, "sekrit", text)
        assert.notMatch(error, /\n|undefined|Error|YAML(Parse|Warn)/, text)
      }
    }
  })

  for (const [name, { says, text }] of Object.entries(bombs)) {
    it(`CF8 ${name}: refused in plain words`, () => {
      const errors = errorsOf(text())
      assert.strictEqual(errors.length, 1)
      assert.include(errors[0], says)
      assert.notInclude(errors[0], "call stack")
    })

    it(`CF8 ${name}: within 300 MB`, { timeout: 60_000 }, async () => {
      const { stdout } = await run(process.execPath, ["--max-old-space-size=160", script, name])
      const [first, ...rest] = stdout.trim().split("\n")
      assert.include(first, says)
      assert.isBelow(Number(rest.at(-1)), 300)
    })
  }
})
