import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { HttpProblem } from "./HttpProblem.ts"
import { checkDeclaredLength, checkJsonType, parseJson } from "./readJson.ts"

const bytes = (text: string) => new TextEncoder().encode(text)

/** What is wrong with the text. */
const problem = (body: Uint8Array): string => {
  try {
    parseJson(body)
  } catch (error) {
    if (error instanceof HttpProblem) return `${error.status} ${error.message}`
    throw error
  }
  throw new Error("it was parsed")
}

const withHeaders = (headers: Readonly<Record<string, string>>): IncomingMessage => {
  const message = new IncomingMessage(new Socket())
  Object.assign(message.headers, headers)
  return message
}

describe("a JSON body", () => {
  it("is parsed as it is", () => {
    assert.deepStrictEqual(parseJson(bytes(`{"a":["[{\\"",1]}`)), { a: [`[{"`, 1] })
    assert.isUndefined(parseJson(new Uint8Array()))
  })

  it("HT1 says where it stops being JSON, and nothing of what stands there", () => {
    assert.strictEqual(
      problem(bytes(`{"a": 1,\n "secret": tru}`)),
      "400 the request's body is not valid JSON at line 2, column 15"
    )
    const places: ReadonlyArray<[string, string]> = [
      [`{"a": 1`, ": it ends too early"],
      ["   ", ": it ends too early"],
      [`{"a": 1,}`, " at line 1, column 9"],
      [`[1 2]`, " at line 1, column 4"],
      [`{"a": "x\ny"}`, " at line 1, column 9"],
      [`{"a": "\\q"}`, " at line 1, column 8"],
      [`{"a": 01}`, " at line 1, column 8"],
      [`{a: 1}`, " at line 1, column 2"],
      [`{"a": 1} x`, " at line 1, column 10"]
    ]
    for (const [text, place] of places) {
      assert.strictEqual(problem(bytes(text)), `400 the request's body is not valid JSON${place}`, text)
    }
  })

  it("HT1 finds the place in a body of megabytes", () => {
    const what = "400 the request's body is not valid JSON"
    const length = 16 * 1024 * 1024
    assert.strictEqual(problem(bytes(`["${"a".repeat(length)}`)), `${what}: it ends too early`)
    assert.strictEqual(
      problem(bytes(`["${"\\n".repeat(length / 2)}\n`)),
      `${what} at line 1, column ${length + 3}`
    )
    assert.strictEqual(problem(bytes(`${"\n".repeat(length)}x`)), `${what} at line ${length + 1}, column 1`)
  })

  it("is UTF-8 or nothing", () => {
    assert.strictEqual(problem(Uint8Array.of(0x22, 0xff, 0x22)), "400 the request's body is not valid UTF-8")
  })

  it("HT9 is refused before it is parsed when it is nested too deeply or has too many values", () => {
    assert.strictEqual(
      problem(bytes("[".repeat(100_000))),
      "400 the request's JSON is nested deeper than 64 levels"
    )
    assert.strictEqual(
      problem(bytes(`[${"{},".repeat(500_000)}1]`)),
      "400 the request's JSON has more than 200000 values"
    )
    assert.deepStrictEqual(parseJson(bytes(`"${"[".repeat(1000)}"`)), "[".repeat(1000))
  })

  it("HT9 leaves prototypes alone", () => {
    parseJson(bytes(`{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}`))
    assert.isFalse("polluted" in {})
  })
})

describe("the type of a body", () => {
  it("HT2 is application/json in UTF-8 and nothing that a browser sends without asking", () => {
    assert.isUndefined(checkJsonType(withHeaders({ "content-type": "application/json" })))
    assert.isUndefined(checkJsonType(withHeaders({ "content-type": "Application/JSON; charset=UTF-8" })))
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/json-seq",
      "application/json; charset=utf-16"
    ]) {
      assert.strictEqual(checkJsonType(withHeaders({ "content-type": type }))?.status, 415, type)
    }
    assert.strictEqual(checkJsonType(withHeaders({}))?.status, 415)
    assert.strictEqual(
      checkJsonType(withHeaders({ "content-type": "application/json", "content-encoding": "gzip" }))?.status,
      415
    )
  })

  it("HT2 is not wrapped in another transfer coding than chunked", () => {
    const coded = (coding: string) =>
      checkJsonType(withHeaders({ "content-type": "application/json", "transfer-encoding": coding }))?.status
    assert.isUndefined(coded("chunked"))
    assert.strictEqual(coded("gzip, chunked"), 415)
  })

  it("HT3 is no longer than the limit, as far as it says so itself", () => {
    assert.isUndefined(checkDeclaredLength(withHeaders({ "content-length": "10" }), 10))
    const refused = checkDeclaredLength(withHeaders({ "content-length": "11" }), 10)
    assert.deepStrictEqual([refused?.status, refused?.close], [413, true])
  })
})
