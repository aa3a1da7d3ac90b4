// The admin API over real HTTP, with runs on fake nodes.
import { Context, Effect, Layer, Logger, Redacted } from "effect"
import { makeAdminSurface } from "../src/admin/AdminSurface.ts"
import type { AdminOptions } from "../src/admin/adminHandlers.ts"
import { makeApiKeys } from "../src/http/ApiKeys.ts"
import { type HttpListenerOptions, listenHttp } from "../src/http/HttpListener.ts"
import type { NodeRecord } from "../src/node/NodeRecord.ts"
import { NodeRegistry } from "../src/node/NodeRegistry.ts"
import { Timers } from "../src/node/Timers.ts"
import type { RunServiceLimits } from "../src/run/RunLimits.ts"
import { RunService } from "../src/run/RunService.ts"
import { fixture } from "./runFixture.ts"

export interface AdminFixtureOptions {
  readonly limits?: Partial<RunServiceLimits>
  readonly listener?: Partial<HttpListenerOptions>
  readonly admin?: Partial<AdminOptions>
  /** Keys by holder. */
  readonly keys?: Readonly<Record<string, string>>
}

export class AdminServer extends Context.Service<
  AdminServer,
  {
    /** Such as http://127.0.0.1:1234. */
    readonly origin: string
    readonly port: number
    /** `path` follows /admin/v1. A body is sent as JSON. */
    readonly call: (method: string, path: string, body?: unknown, init?: RequestInit) => Effect.Effect<Answer>
    /** The same, without waiting for the end of the answer. */
    readonly open: (
      method: string,
      path: string,
      body?: unknown,
      init?: RequestInit
    ) => Effect.Effect<Response>
  }
>()("@iop/edge/test/AdminServer") {}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The answer as JSON. */
  readonly body: Record<string, unknown>
  /** `error.code` and `error.message` of a problem. */
  readonly problem: { readonly code: string; readonly message: string }
}

const problemOf = (body: Record<string, unknown>): Answer["problem"] => {
  const { error } = body
  if (typeof error !== "object" || error === null || !("code" in error) || !("message" in error)) {
    return { code: "", message: "" }
  }
  return { code: String(error.code), message: String(error.message) }
}

export const adminFixture = (records: ReadonlyArray<NodeRecord>, options: AdminFixtureOptions = {}) =>
  Layer.effect(
    AdminServer,
    Effect.gen(function* () {
      const edge = { runs: yield* RunService, registry: yield* NodeRegistry, timers: yield* Timers }
      const surface = yield* makeAdminSurface(edge, {
        maxBody: 4096,
        sseCommentMs: 10_000,
        ...options.admin
      })
      const keys = Object.entries(options.keys ?? {}).map(([name, key]) => ({
        name,
        key: Redacted.make(key)
      }))
      const { address } = yield* listenHttp({
        name: "http",
        host: "127.0.0.1",
        port: 0,
        hosts: [],
        keys: makeApiKeys({ api_keys: keys }),
        surfaces: [surface],
        headersTimeoutMs: 10_000,
        bodyTimeoutMs: 60_000,
        maxBody: 4096,
        ...options.listener
      })
      const origin = `http://127.0.0.1:${address.port}`
      const open = (method: string, path: string, body?: unknown, init: RequestInit = {}) =>
        Effect.promise((signal) =>
          fetch(`${origin}/admin/v1${path}`, {
            method,
            signal,
            ...(body === undefined
              ? {}
              : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
            ...init
          })
        )
      const call = (method: string, path: string, body?: unknown, init?: RequestInit) =>
        Effect.flatMap(open(method, path, body, init), (response) =>
          Effect.promise(async (): Promise<Answer> => {
            const text = await response.text()
            const json =
              (response.headers.get("content-type") ?? "").startsWith("application/json") && text !== ""
            const parsed: Record<string, unknown> = json ? JSON.parse(text) : {}
            return {
              status: response.status,
              headers: response.headers,
              text,
              body: parsed,
              problem: problemOf(parsed)
            }
          })
        )
      return { origin, port: address.port, call, open }
    })
  ).pipe(Layer.provideMerge(fixture(records, options.limits)), Layer.provideMerge(Logger.layer([])))
