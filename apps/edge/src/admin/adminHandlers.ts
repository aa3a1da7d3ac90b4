// What the admin API does: reads requests, asks the edge of this process, answers in views.
import type { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type { RunReader } from "../run/RunReader.ts"
import { AdminApi } from "./AdminApi.ts"
import { bodyDecoder } from "./decodeBody.ts"
import { EdgeProblem } from "./EdgeClient.ts"
import { type LocalEdge, makeLocalClient, submitRun, unreadable } from "./localClient.ts"
import { problemOfEdge } from "./problemOfEdge.ts"
import { RequestInfo } from "./RequestInfo.ts"
import { RunCancel, RunNeed, RunSubmission } from "./RunSubmission.ts"
import { runView } from "./RunView.ts"
import { sseOfReader } from "./sseOfReader.ts"

export interface AdminOptions {
  /** Largest body in bytes. */
  readonly maxBody: number
  /** Milliseconds of silence before a stream gets a comment. */
  readonly sseCommentMs: number
}

const readEmpty = bodyDecoder(Schema.Struct({}))
const readCancel = bodyDecoder(RunCancel)
const readSubmission = bodyDecoder(RunSubmission)
const readNeed = bodyDecoder(RunNeed)

/** Empty bodies need no room. */
const SMALL_BODY = 16 * 1024

const incoming = (request: HttpServerRequest): IncomingMessage =>
  NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage

/** Runs an operation of the edge on behalf of the request's caller. */
const asCaller = <A>(
  edge: LocalEdge,
  operation: (client: ReturnType<typeof makeLocalClient>) => Effect.Effect<A, EdgeProblem>
) =>
  Effect.flatMap(RequestInfo, ({ caller, keyed }) =>
    orProblem(operation(makeLocalClient(edge, caller, keyed ? undefined : "asked for over HTTP")))
  )

/** Problems leave the handlers as defects: the surface answers all of them in one place. */
const orProblem = <A, R>(effect: Effect.Effect<A, EdgeProblem, R>): Effect.Effect<A, never, R> =>
  Effect.catch(effect, (problem) => Effect.die(problemOfEdge(problem)))

export const nodeHandlers = (edge: LocalEdge) =>
  HttpApiBuilder.group(AdminApi, "nodes", (handlers) =>
    handlers
      .handle("listNodes", () =>
        Effect.map(
          asCaller(edge, (client) => client.nodes),
          (nodes) => ({ nodes })
        )
      )
      .handle("getNode", ({ params }) => asCaller(edge, (client) => client.node(params.name)))
      .handleRaw("cordonNode", ({ params, request }) =>
        afterEmpty(
          request,
          asCaller(edge, (client) => client.setCordoned(params.name, true))
        )
      )
      .handleRaw("uncordonNode", ({ params, request }) =>
        afterEmpty(
          request,
          asCaller(edge, (client) => client.setCordoned(params.name, false))
        )
      )
      .handleRaw("drainNode", ({ params, request }) =>
        afterEmpty(
          request,
          asCaller(edge, (client) => client.drainNode(params.name))
        )
      )
  )

const afterEmpty = <A>(request: HttpServerRequest, effect: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.andThen(Effect.orDie(readEmpty(incoming(request), SMALL_BODY)), effect)

export const runHandlers = (edge: LocalEdge, options: AdminOptions) =>
  HttpApiBuilder.group(AdminApi, "runs", (handlers) =>
    handlers
      .handle("listRuns", ({ query }) =>
        Effect.map(
          asCaller(edge, (client) =>
            client.runs({
              ...(query.active === undefined ? {} : { active: query.active === "true" }),
              limit: query.limit ?? 100
            })
          ),
          (runs) => ({ runs })
        )
      )
      .handle("getRun", ({ params }) => asCaller(edge, (client) => client.run(params.id)))
      .handleRaw("cancelRun", ({ params, request }) =>
        Effect.flatMap(Effect.orDie(readCancel(incoming(request), SMALL_BODY)), ({ reason }) =>
          asCaller(edge, (client) => client.cancel(params.id, reason))
        )
      )
      .handleRaw("explain", ({ request }) =>
        Effect.flatMap(Effect.orDie(readNeed(incoming(request), options.maxBody)), (need) =>
          asCaller(edge, (client) => client.explain(need))
        )
      )
      .handleRaw("submitRun", ({ request, query }) => submit(edge, options, request, query.events))
      .handle("readEvents", ({ params, query, headers, request }) =>
        orProblem(
          Effect.mapError(
            edge.runs.read(params.id, query.after ?? Number(headers["last-event-id"] ?? 0)),
            unreadable
          )
        ).pipe(Effect.map((reader) => eventStream(reader, request, options)))
      )
  )

const submit = Effect.fnUntraced(function* (
  edge: LocalEdge,
  options: AdminOptions,
  request: HttpServerRequest,
  events: "true" | "false" | undefined
) {
  const { caller } = yield* RequestInfo
  const submission = yield* Effect.orDie(readSubmission(incoming(request), options.maxBody))
  const watched = events === "true" || (events === undefined && accepts(request, "text/event-stream"))
  if (!watched && submission.detached === false) {
    const message = "detached: a run that ends with its caller needs one that stays; add events=true"
    return yield* Effect.die(problemOfEdge(new EdgeProblem({ code: "invalid_request", message })))
  }
  // Without a stream nobody's connection stands for the run.
  const wanted = watched ? submission : { ...submission, detached: true }
  return yield* Effect.uninterruptible(
    Effect.map(orProblem(submitRun(edge, wanted, caller)), ({ run, reader }) => {
      if (watched) return eventStream(reader, request, options, { "x-iop-run-id": run.id })
      reader.close()
      return HttpServerResponse.jsonUnsafe(runView(run), {
        status: 201,
        headers: { "x-iop-run-id": run.id, location: `/admin/v1/runs/${run.id}` }
      })
    })
  )
})

const accepts = (request: HttpServerRequest, type: string): boolean =>
  (request.headers.accept ?? "")
    .toLowerCase()
    .split(",")
    .some((part) => part.trim().split(";", 1)[0] === type)

const eventStream = (
  reader: RunReader,
  request: HttpServerRequest,
  options: AdminOptions,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse => {
  const response = NodeHttpServerRequest.toServerResponse(request) as ServerResponse
  // Nothing pulls a stream that could not be answered any more: its reader is left all the same.
  if (response.closed) reader.close()
  else response.once("close", reader.close)
  return HttpServerResponse.stream(sseOfReader(reader, options.sseCommentMs), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store", ...headers }
  })
}
