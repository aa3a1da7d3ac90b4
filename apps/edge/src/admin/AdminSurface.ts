// The admin API as a surface of the HTTP listener: the Effect application behind it, and the one place where its errors
// become HTTP. What is not a known problem is an opaque 500 with the request id; the log has the rest.
import type { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Cause, Effect, Layer, type Scope } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerError } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { HttpApiSchemaError } from "effect/http-api/HttpApiError"
import type { HttpSurface, RequestContext } from "../http/HttpListener.ts"
import { writeProblem } from "../http/HttpListener.ts"
import { HttpProblem, retryAfterSeconds } from "../http/HttpProblem.ts"
import { AdminApi, OPENAPI_PATH } from "./AdminApi.ts"
import { type AdminOptions, nodeHandlers, runHandlers } from "./adminHandlers.ts"
import { schemaProblem } from "./decodeBody.ts"
import { EdgeProblem } from "./EdgeClient.ts"
import type { LocalEdge } from "./localClient.ts"
import { openApiDocument } from "./openApiDocument.ts"
import { problemOfEdge } from "./problemOfEdge.ts"
import { RequestInfo } from "./RequestInfo.ts"

/** Path patterns with their methods, for 405 and for the `route` label of metrics. */
const routes: ReadonlyArray<{
  readonly pattern: string
  readonly match: RegExp
  readonly methods: Array<string>
}> = (() => {
  const found = new Map<string, Array<string>>([[OPENAPI_PATH, ["GET"]]])
  for (const group of Object.values(AdminApi.groups)) {
    for (const endpoint of Object.values(group.endpoints)) {
      const methods = found.get(endpoint.path) ?? []
      found.set(endpoint.path, [...methods, endpoint.method])
    }
  }
  return [...found].map(([pattern, methods]) => ({
    pattern,
    match: new RegExp(`^${pattern.replace(/[.]/g, "\\.").replace(/:[a-z]+/g, "[^/]+")}$`),
    methods
  }))
})()

/** Makes the surface. Requests run in the scope and are interrupted when their caller leaves. */
export const makeAdminSurface = (
  edge: LocalEdge,
  options: AdminOptions
): Effect.Effect<HttpSurface, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const infos = new WeakMap<object, RequestContext>()
    const groups = Layer.mergeAll(nodeHandlers(edge), runHandlers(edge, options))
    const document = HttpServerResponse.jsonUnsafe(openApiDocument())
    const app = yield* HttpRouter.toHttpEffect(
      Layer.mergeAll(
        HttpApiBuilder.layer(AdminApi).pipe(Layer.provide(groups)),
        HttpRouter.add("GET", OPENAPI_PATH, Effect.succeed(document))
      )
    ).pipe(Effect.provide(NodeHttpServer.layerHttpServices))
    const answered = Effect.gen(function* () {
      const request = yield* HttpServerRequest
      const info = infos.get(request.source) ?? {
        requestId: "",
        caller: "admin",
        keyed: false,
        route: "none"
      }
      return yield* app.pipe(
        Effect.provideService(RequestInfo, info),
        Effect.catchCause((cause) => answerCause(cause, info.requestId))
      )
    })
    const handler = yield* NodeHttpServer.makeHandler(answered, { scope })
    const handle = (request: IncomingMessage, response: ServerResponse, context: RequestContext): void => {
      const path = (request.url ?? "").split("?", 1)[0] ?? ""
      const route = routes.find(({ match }) => match.test(path))
      if (route === undefined) {
        const message = "there is nothing at this path; see /admin/v1/openapi.json"
        refuse(response, new HttpProblem({ status: 404, code: "not_found", message }))
        return
      }
      context.route = route.pattern
      const { method = "" } = request
      const allow = [...route.methods, ...(route.methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"]
      if (method === "OPTIONS") {
        response.writeHead(204, { allow: allow.join(", ") }).end()
        return
      }
      if (!allow.includes(method)) {
        const message = `this path takes ${allow.join(", ")}`
        refuse(response, new HttpProblem({ status: 405, code: "method_not_allowed", message, allow }))
        return
      }
      infos.set(request, context)
      handler(request, response)
    }
    return {
      name: "admin",
      owns: (path) => path === "/admin" || path.startsWith("/admin/"),
      guarded: () => true,
      handle,
      refuse
    }
  })

const bodyOf = (problem: HttpProblem) => ({ error: { code: problem.code, message: problem.message } })

const refuse = (response: ServerResponse, problem: HttpProblem): void =>
  writeProblem(response, problem, bodyOf(problem), retryAfterSeconds(problem))

/** The answer to whatever stopped a handler. */
const answerCause = (
  cause: Cause.Cause<unknown>,
  requestId: string
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
  const problem = toProblem(Cause.squash(cause))
  if (problem !== undefined) return Effect.succeed(respond(problem))
  const message = `internal error; the log has it under request ${requestId}`
  return Effect.as(
    Effect.logError("admin request failed", Cause.squash(cause)).pipe(Effect.annotateLogs({ requestId })),
    respond(new HttpProblem({ status: 500, code: "internal", message }))
  )
}

const toProblem = (error: unknown): HttpProblem | undefined => {
  if (error instanceof HttpProblem) return error
  if (error instanceof EdgeProblem) return problemOfEdge(error)
  if (
    error instanceof HttpApiSchemaError &&
    (error.kind === "Params" || error.kind === "Query" || error.kind === "Headers")
  ) {
    return schemaProblem(error.cause, error.kind.toLowerCase())
  }
  if (error instanceof HttpServerError && error.reason._tag === "RouteNotFound") {
    return new HttpProblem({ status: 404, code: "not_found", message: "there is nothing at this path" })
  }
  return undefined
}

const respond = (problem: HttpProblem): HttpServerResponse.HttpServerResponse => {
  const retryAfter = retryAfterSeconds(problem)
  return HttpServerResponse.jsonUnsafe(bodyOf(problem), {
    status: problem.status,
    headers: {
      ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }),
      ...(problem.close === true ? { connection: "close" } : {})
    }
  })
}
