// The edge as it is put together, on real ports, without nodes.
import { connect, createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Logger, Scope } from "effect"
import { EdgeApp } from "./EdgeApp.ts"
import { localProfile } from "./localProfile.ts"

const anyPorts = { nodes: 0, http: 0, ops: 0 }

const started = (ports: Parameters<typeof localProfile>[0] = anyPorts) =>
  Layer.build(
    EdgeApp.layer(localProfile(ports).config, "1.2.3").pipe(Layer.provideMerge(Logger.layer([])))
  ).pipe(Effect.map((context) => Context.get(context, EdgeApp)))

const get = (port: number, path: string, init?: RequestInit) =>
  Effect.promise(async () => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init)
    return { status: response.status, text: await response.text() }
  })

/** Whether something listens on the port. */
const listens = (port: number) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    })
    socket.once("error", () => resume(Effect.succeed(false)))
  })

/** Holds a port for as long as the scope lasts. */
const holding = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
    const server = createServer()
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      if (address === null || typeof address === "string") throw new Error("no address")
      resume(Effect.succeed({ port: address.port, close: () => server.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

describe("an edge", () => {
  it.live("answers on its listeners, each with what is its own", () =>
    Effect.gen(function* () {
      const { addresses } = yield* started()
      assert.deepStrictEqual(yield* get(addresses.ops.port, "/healthz"), {
        status: 200,
        text: `{"status":"ok"}\n`
      })
      assert.deepStrictEqual(yield* get(addresses.ops.port, "/readyz"), {
        status: 200,
        text: `{"ready":true}\n`
      })
      const metrics = yield* get(addresses.ops.port, "/metrics")
      assert.match(metrics.text, /^iop_edge_nodes\{state="offline"\} 2$/m)
      assert.match(metrics.text, /^iop_edge_build_info\{version="1\.2\.3"\} 1$/m)
      assert.match(metrics.text, /^process_resident_memory_bytes \d+$/m)
      assert.match(
        metrics.text,
        /^iop_edge_http_requests_total\{route="\/healthz",method="GET",status="2xx"\} 1$/m
      )
      assert.strictEqual((yield* get(addresses.http.port, "/admin/v1/nodes")).status, 200)
      assert.strictEqual((yield* get(addresses.http.port, "/metrics")).status, 404)
      assert.strictEqual((yield* get(addresses.ops.port, "/admin/v1/nodes")).status, 404)
      assert.strictEqual((yield* get(addresses.ops.port, "/healthz", { method: "DELETE" })).status, 405)
      assert.strictEqual(
        (yield* get(addresses.ops.port, "/healthz", { headers: { origin: "http://x" } })).status,
        403
      )
      assert.isTrue(yield* listens(addresses.nodes.port))
    })
  )

  it.live("is ready for nothing once it drains, and still answers", () =>
    Effect.gen(function* () {
      const { addresses, drain, client } = yield* started()
      yield* drain
      assert.deepStrictEqual(yield* get(addresses.ops.port, "/readyz"), {
        status: 503,
        text: `{"ready":false,"why":"the edge is stopping"}\n`
      })
      assert.strictEqual((yield* get(addresses.ops.port, "/healthz")).status, 200)
      const refused = yield* Effect.flip(
        client("test").submit({ adapter: "mock", target: "echo", prompt: "x" })
      )
      assert.strictEqual(refused.code, "draining")
    })
  )

  it.live("ED1 leaves nothing behind when it is closed", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { addresses } = yield* Scope.provide(started(), scope)
      yield* Scope.close(scope, Exit.void)
      for (const { port } of [addresses.nodes, addresses.http, addresses.ops])
        assert.isFalse(yield* listens(port))
    })
  )

  for (const taken of ["nodes", "http", "ops"] as const) {
    it.live(`ED6 has all its listeners or none: ${taken} is taken`, () =>
      Effect.gen(function* () {
        const { port } = yield* holding
        const first = yield* started().pipe(Effect.scoped)
        const free = first.addresses
        const ports = { nodes: free.nodes.port, http: free.http.port, ops: free.ops.port, [taken]: port }
        const error = yield* Effect.flip(started(ports))
        assert.match(
          error.message,
          new RegExp(
            `^listen\\.${taken}: cannot listen on 127\\.0\\.0\\.1:${port}: another process uses this port; stop it or choose another port$`
          )
        )
        for (const [name, other] of Object.entries(ports)) {
          if (name !== taken) assert.isFalse(yield* listens(other), name)
        }
      })
    )
  }
})
