// An edge that runs elsewhere, over its admin API. Plain node:http: commands start fast, and a stream that is left
// closes its connection, by which the edge knows that the run's caller has gone.
import { request as httpRequest, type IncomingMessage } from "node:http"
import { request as httpsRequest } from "node:https"
import { Effect, Redacted, Schema, Stream } from "effect"
import { type EdgeClient, EdgeProblem } from "../../admin/EdgeClient.ts"
import { NodeView } from "../../admin/NodeView.ts"
import { endsRun, RunEventView } from "../../admin/RunEventView.ts"
import { ExplanationView, RunView } from "../../admin/RunView.ts"
import { type SseEvent, SseReader } from "./sseEvents.ts"

export interface HttpClientOptions {
  /** Where the edge's HTTP listener is, such as http://127.0.0.1:7611. */
  readonly url: URL
  readonly key: Redacted.Redacted<string> | undefined
}

/** An answer that takes longer than this to begin comes from no living edge. */
const ANSWER_TIMEOUT_MS = 30_000

const ErrorBody = Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) })
const decodeError = Schema.decodeUnknownOption(Schema.fromJsonString(ErrorBody))
const decodeEvent = Schema.decodeUnknownEffect(Schema.fromJsonString(RunEventView))
const decodeNodes = jsonDecoder(Schema.Struct({ nodes: Schema.Array(NodeView) }))
const decodeNode = jsonDecoder(NodeView)
const decodeRuns = jsonDecoder(Schema.Struct({ runs: Schema.Array(RunView) }))
const decodeRun = jsonDecoder(RunView)
const decodeExplanation = jsonDecoder(ExplanationView)

function jsonDecoder<S extends Schema.Codec<unknown, unknown>>(schema: S) {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return (text: string): Effect.Effect<S["Type"], EdgeProblem> => Effect.mapError(decode(text), notAnEdge)
}

const notAnEdge = (): EdgeProblem =>
  new EdgeProblem({
    code: "unreachable",
    message:
      "the answer is not one of this edge's version; is it another server, or another version of the edge?"
  })

/** The client; nothing is sent before it is asked for something. */
export const makeHttpClient = (options: HttpClientOptions): EdgeClient => {
  const call = (method: string, path: string, body?: unknown) =>
    Effect.scoped(Effect.flatMap(send(options, method, path, body), readText))
  const name = encodeURIComponent
  const post = (path: string) => Effect.flatMap(call("POST", path, {}), decodeNode)
  return {
    nodes: Effect.map(Effect.flatMap(call("GET", "/nodes"), decodeNodes), ({ nodes }) => nodes),
    node: (node) => Effect.flatMap(call("GET", `/nodes/${name(node)}`), decodeNode),
    setCordoned: (node, cordoned) => post(`/nodes/${name(node)}/${cordoned ? "cordon" : "uncordon"}`),
    drainNode: (node) => post(`/nodes/${name(node)}/drain`),
    runs: ({ active, limit }) => {
      const query = new URLSearchParams({
        ...(active === undefined ? {} : { active: String(active) }),
        ...(limit === undefined ? {} : { limit: String(limit) })
      })
      return Effect.map(Effect.flatMap(call("GET", `/runs?${query}`), decodeRuns), ({ runs }) => runs)
    },
    run: (id) => Effect.flatMap(call("GET", `/runs/${name(id)}`), decodeRun),
    cancel: (id, reason) =>
      Effect.flatMap(
        call("POST", `/runs/${name(id)}/cancel`, reason === undefined ? {} : { reason }),
        decodeRun
      ),
    explain: (need) => Effect.flatMap(call("POST", "/explain", need), decodeExplanation),
    submit: (submission) =>
      Effect.map(open(options, "POST", "/runs?events=true", submission), (response) => ({
        id: String(response.headers["x-iop-run-id"] ?? ""),
        events: eventsOf(options.url, response)
      })),
    submitDetached: (submission) =>
      Effect.flatMap(call("POST", "/runs?events=false", { ...submission, detached: true }), decodeRun),
    events: (id, after) =>
      Stream.unwrap(
        Effect.map(open(options, "GET", `/runs/${name(id)}/events?after=${after}`, undefined), (response) =>
          eventsOf(options.url, response)
        )
      )
  }
}

/** Sends the request; the response is destroyed with the scope. */
const send = (options: HttpClientOptions, method: string, path: string, body: unknown) =>
  Effect.acquireRelease(
    open(options, method, path, body),
    (response) => Effect.sync(() => response.destroy()),
    {
      interruptible: true
    }
  )

/** The response once its head is there, if it is a good one; the caller destroys it. */
const open = (
  { url, key }: HttpClientOptions,
  method: string,
  path: string,
  body: unknown
): Effect.Effect<IncomingMessage, EdgeProblem> =>
  Effect.flatMap(
    Effect.callback<IncomingMessage, EdgeProblem>((resume) => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const base = url.pathname.replace(/\/+$/, "")
      const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(
        new URL(`${base}/admin/v1${path}`, url),
        {
          method,
          agent: false,
          headers: {
            accept: "application/json, text/event-stream",
            ...(key === undefined ? {} : { authorization: `Bearer ${Redacted.value(key)}` }),
            ...(text === undefined
              ? {}
              : { "content-type": "application/json", "content-length": Buffer.byteLength(text) })
          }
        },
        (response) => {
          request.setTimeout(0)
          resume(Effect.succeed(response))
        }
      )
      request.setTimeout(ANSWER_TIMEOUT_MS, () => request.destroy(new Error("no answer")))
      request.on("error", (error) => resume(Effect.fail(unreachable(url, error))))
      request.end(text)
      return Effect.sync(() => request.destroy())
    }),
    (response) =>
      (response.statusCode ?? 500) < 300
        ? Effect.succeed(response)
        : Effect.ensuring(
            Effect.flatMap(readText(response), (text) =>
              Effect.fail(refusal(response, text, key !== undefined))
            ),
            Effect.sync(() => response.destroy())
          )
  )

const refusal = (response: IncomingMessage, text: string, keySent: boolean): EdgeProblem => {
  const body = decodeError(text)
  if (body._tag === "None") return notAnEdge()
  const { code } = body.value.error
  if (code === "invalid_api_key") {
    // The edge says the same to whoever has no key and to whoever guesses; this side knows which of them it is.
    return new EdgeProblem({ code, message: keySent ? WRONG_KEY : NO_KEY })
  }
  const retryAfter = Number(response.headers["retry-after"])
  return new EdgeProblem({
    ...body.value.error,
    ...(Number.isFinite(retryAfter) ? { retryAfterMs: retryAfter * 1000 } : {})
  })
}

const NO_KEY =
  "this edge wants an API key and none was sent: set IOP_EDGE_KEY in the environment, or name a file that holds it with --key-file"
const WRONG_KEY =
  "the edge does not accept the API key that was sent: it is not one of its api_keys; look at IOP_EDGE_KEY in the environment, or at the file of --key-file"

const unreachable = (url: URL, error: NodeJS.ErrnoException): EdgeProblem => {
  const why =
    error.code === "ECONNREFUSED"
      ? "nothing listens there; start an edge, or say where it is with --connect"
      : error.code === "ENOTFOUND" || error.code === "EAI_AGAIN"
        ? "its name does not resolve"
        : error.code === "ECONNRESET"
          ? "the connection broke"
          : (error.code ?? error.message)
  return new EdgeProblem({ code: "unreachable", message: `cannot reach the edge at ${url.origin}: ${why}` })
}

const broken = (url: URL): EdgeProblem =>
  new EdgeProblem({
    code: "unreachable",
    message: `the connection to the edge at ${url.origin} broke before the run's end`
  })

const readText = (response: IncomingMessage): Effect.Effect<string, EdgeProblem> =>
  Effect.tryPromise({
    try: async () => Buffer.concat(await response.toArray()).toString("utf8"),
    catch: () => new EdgeProblem({ code: "unreachable", message: "the connection to the edge broke" })
  })

/** The run's events; the stream's end, however it comes, closes the connection. */
const eventsOf = (url: URL, response: IncomingMessage): Stream.Stream<RunEventView, EdgeProblem> => {
  const reader = new SseReader()
  let ended = false
  return Stream.fromAsyncIterable<Uint8Array, EdgeProblem>(response, () => broken(url)).pipe(
    Stream.mapEffect((chunk) =>
      Effect.flatMap(Effect.try({ try: () => reader.push(chunk), catch: notAnEdge }), Effect.forEach(eventOf))
    ),
    Stream.flatMap((events) => Stream.fromIterable(events)),
    Stream.tap((event) =>
      Effect.sync(() => {
        ended ||= endsRun(event)
      })
    ),
    Stream.concat(Stream.suspend(() => (ended ? Stream.empty : Stream.fail(broken(url))))),
    Stream.ensuring(Effect.sync(() => response.destroy()))
  )
}

const eventOf = ({ event, data }: SseEvent): Effect.Effect<RunEventView, EdgeProblem> => {
  if (event !== "error") return Effect.mapError(decodeEvent(data), notAnEdge)
  const body = decodeError(data)
  return Effect.fail(body._tag === "None" ? notAnEdge() : new EdgeProblem(body.value.error))
}
