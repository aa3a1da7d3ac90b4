import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { tracesUrl, tracingLayer } from "./Tracing.ts"

describe("tracingLayer", () => {
  it("is nothing at all without a collector", () => {
    assert.strictEqual(tracingLayer({ service_name: "iop-edge" }, "1.0.0"), Layer.empty)
  })

  it("finds the collector's path", () => {
    assert.strictEqual(tracesUrl("http://127.0.0.1:4318"), "http://127.0.0.1:4318/v1/traces")
    assert.strictEqual(tracesUrl("http://collector/otlp/"), "http://collector/otlp/v1/traces")
    assert.strictEqual(tracesUrl("http://collector/v1/traces"), "http://collector/v1/traces")
  })

  it.live("sends the spans of a program to the collector, at the latest when it ends", () =>
    Effect.promise(async () => {
      const bodies: Array<string> = []
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          bodies.push(`${request.method} ${request.url} ${Buffer.concat(chunks)}`)
          response.end("{}")
        })
      })
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      const { port } = server.address() as AddressInfo
      const layer = tracingLayer({ otlp_url: `http://127.0.0.1:${port}`, service_name: "iop-test" }, "1.2.3")
      await Effect.runPromise(Effect.provide(Effect.withSpan(Effect.void, "a run"), layer))
      server.close()
      assert.strictEqual(bodies.length, 1)
      assert.match(bodies[0] ?? "", /^POST \/v1\/traces /)
      assert.include(bodies[0], '"a run"')
      assert.include(bodies[0], "iop-test")
      assert.include(bodies[0], "1.2.3")
    })
  )

  it.live("a collector that is not there does not fail the program", () =>
    Effect.gen(function* () {
      const layer = tracingLayer({ otlp_url: "http://127.0.0.1:1", service_name: "iop-test" }, "1.2.3")
      const value = yield* Effect.provide(Effect.withSpan(Effect.succeed(1), "a run"), layer)
      assert.strictEqual(value, 1)
    })
  )
})
