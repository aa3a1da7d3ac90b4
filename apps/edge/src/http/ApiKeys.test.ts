import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { makeApiKeys, open } from "./ApiKeys.ts"

const keys = makeApiKeys({
  api_keys: [
    { name: "laptop", key: Redacted.make("sesame") },
    { name: "phone", key: Redacted.make("street") }
  ]
})

describe("API keys", () => {
  it("name their holder, as a bearer or in a header of their own", () => {
    assert.strictEqual(keys.identify({ authorization: "Bearer sesame" }), "laptop")
    assert.strictEqual(keys.identify({ authorization: "bearer  street" }), "phone")
    assert.strictEqual(keys.identify({ "x-api-key": "street" }), "phone")
  })

  it("HT7 let nobody in without a right one", () => {
    for (const headers of [
      {},
      { authorization: "Bearer sesam" },
      { authorization: "Basic sesame" },
      { authorization: "Bearer" },
      { authorization: "Bearer sesame street" },
      { "x-api-key": "" },
      { "x-api-key": "Sesame" }
    ]) {
      assert.isUndefined(keys.identify(headers), JSON.stringify(headers))
    }
  })

  it("are needed by nobody when none are configured", () => {
    assert.strictEqual(makeApiKeys({ api_keys: [] }).identify({}), open)
  })
})
