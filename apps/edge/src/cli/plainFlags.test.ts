import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Flag } from "effect/cli"
import { pairsFlag, wholeNumberFlag } from "./plainFlags.ts"

const parse = <A>(flag: Flag.Flag<A>, name: string, values: ReadonlyArray<string>) =>
  flag.parse({ arguments: [], flags: { [name]: [...values] } }).pipe(
    Effect.map(([, value]) => value),
    Effect.catch((error) => Effect.succeed(error.message)),
    Effect.provide(NodeServices.layer)
  )

describe("a mistake in a flag", () => {
  const port = wholeNumberFlag("http-port", { what: "port", minimum: 0, maximum: 65_535 })
  it.effect("that is a number says what was given and what may be", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* parse(port, "http-port", ["0"]), 0)
      assert.strictEqual(yield* parse(port, "http-port", ["65535"]), 65_535)
      for (const given of ["65536", "-1", "1.5", "8e3", "http", "99999999999999999999"]) {
        assert.strictEqual(
          yield* parse(port, "http-port", [given]),
          `--http-port: ${given} is not a port (0 to 65535)`
        )
      }
      assert.strictEqual(
        yield* parse(port, "http-port", [""]),
        "--http-port: nothing is not a port (0 to 65535)"
      )
    })
  )

  it.effect("that is a pair says how one is written", () =>
    Effect.gen(function* () {
      const label = pairsFlag("label")
      assert.deepStrictEqual(yield* parse(label, "label", []), {})
      assert.deepStrictEqual(yield* parse(label, "label", ["a=1", "b=x=y", "a=2", "c="]), {
        a: "2",
        b: "x=y",
        c: ""
      })
      for (const given of ["room", "=x"]) {
        assert.strictEqual(yield* parse(label, "label", [given]), `--label needs KEY=VALUE, got ${given}`)
      }
    })
  )
})
