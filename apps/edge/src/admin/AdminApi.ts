// The admin API as a description: paths, schemas and errors, from which the OpenAPI document is made. A control plane
// attaches here. The handlers are in `adminHandlers.ts`.
import { Schema } from "effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import { NodeView } from "./NodeView.ts"
import { RunEventView } from "./RunEventView.ts"
import { RunCancel, RunNeed, RunSubmission } from "./RunSubmission.ts"
import { ExplanationView, RunView } from "./RunView.ts"

/** Every error, whatever its status. */
export const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String.annotate({ description: "For programs." }),
    message: Schema.String.annotate({ description: "For a person." })
  })
}).annotate({ identifier: "Error" })

const problem = (status: number, description: string) =>
  ErrorBody.annotate({ identifier: `Error${status}`, description }).pipe(HttpApiSchema.status(status))

const invalid = problem(400, "The request is not what it should be; the message names the field.")
const unauthorized = problem(401, "No valid API key.")
const unknown = problem(404, "There is no such thing.")
const conflict = problem(409, "The state of things does not allow it.")
const tooLarge = problem(413, "The body is over the limit.")
const wrongType = problem(415, "The body is not JSON in UTF-8.")
const limited = problem(429, "The caller's own limit; see Retry-After.")
const broken = problem(502, "The node or its backend failed.")
const unavailable = problem(503, "Not now; see Retry-After.")
const late = problem(504, "A clock ran out before the first output.")

const always = [invalid, unauthorized] as const
const withBody = [...always, tooLarge, wrongType] as const

const NodeName = { name: Schema.String.annotate({ description: "Id or alias of the node." }) }
const RunId = { id: Schema.String }
/** Nothing, or an empty object. */
const Empty = Schema.Struct({})

const Nodes = HttpApiGroup.make("nodes")
  .add(
    HttpApiEndpoint.get("listNodes", "/nodes", {
      success: Schema.Struct({ nodes: Schema.Array(NodeView) }),
      error: [...always]
    }).annotate(OpenApi.Summary, "Every node of the configuration, connected or not"),
    HttpApiEndpoint.get("getNode", "/nodes/:name", {
      params: NodeName,
      success: NodeView,
      error: [...always, unknown]
    }).annotate(OpenApi.Summary, "One node"),
    HttpApiEndpoint.post("cordonNode", "/nodes/:name/cordon", {
      params: NodeName,
      payload: Empty,
      success: NodeView,
      error: [...withBody, unknown]
    }).annotate(OpenApi.Summary, "Keep new runs away from a node"),
    HttpApiEndpoint.post("uncordonNode", "/nodes/:name/uncordon", {
      params: NodeName,
      payload: Empty,
      success: NodeView,
      error: [...withBody, unknown]
    }).annotate(OpenApi.Summary, "Let new runs come to a node again"),
    HttpApiEndpoint.post("drainNode", "/nodes/:name/drain", {
      params: NodeName,
      payload: Empty,
      success: NodeView,
      error: [...withBody, unknown]
    }).annotate(OpenApi.Summary, "Cordon a node and ask it to finish its runs")
  )
  .prefix("/admin/v1")

const Runs = HttpApiGroup.make("runs")
  .add(
    HttpApiEndpoint.get("listRuns", "/runs", {
      query: {
        active: Schema.optionalKey(Schema.Literals(["true", "false"])),
        limit: Schema.optionalKey(
          Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 1_000 }))
        )
      },
      success: Schema.Struct({ runs: Schema.Array(RunView) }),
      error: [...always]
    }).annotate(OpenApi.Summary, "Runs, newest first"),
    HttpApiEndpoint.post("submitRun", "/runs", {
      query: { events: Schema.optionalKey(Schema.Literals(["true", "false"])) },
      payload: RunSubmission,
      success: [RunView.pipe(HttpApiSchema.status(201)), HttpApiSchema.StreamSse({ data: RunEventView })],
      error: [...withBody, unknown, conflict, limited, broken, unavailable, late]
    })
      .annotate(OpenApi.Summary, "Submit a run")
      .annotate(
        OpenApi.Description,
        "With `events=true`, or when `Accept` is `text/event-stream`, the answer is the stream of the run's events and the run belongs to the connection: closing it cancels the run unless it is detached. Otherwise the answer is the run, which goes on by itself. The run's id is in `x-iop-run-id` in both cases."
      ),
    HttpApiEndpoint.get("getRun", "/runs/:id", {
      params: RunId,
      success: RunView,
      error: [...always, unknown]
    }).annotate(OpenApi.Summary, "One run"),
    HttpApiEndpoint.get("readEvents", "/runs/:id/events", {
      params: RunId,
      query: {
        after: Schema.optionalKey(
          Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(0))
        )
      },
      headers: { "last-event-id": Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{1,10}$/))) },
      success: HttpApiSchema.StreamSse({ data: RunEventView }),
      error: [...always, unknown, conflict]
    })
      .annotate(OpenApi.Summary, "Watch a run's events")
      .annotate(
        OpenApi.Description,
        "Server-sent events: `id` is the event's seq, `data` the event. Begins after seq `after` (or `Last-Event-ID`); 409 `too_late` when these events are no longer kept. A silent stream gets a comment every 10 s."
      ),
    HttpApiEndpoint.post("cancelRun", "/runs/:id/cancel", {
      params: RunId,
      payload: RunCancel,
      success: RunView,
      error: [...withBody, unknown]
    }).annotate(OpenApi.Summary, "Cancel a run; idempotent, answers the state after it"),
    HttpApiEndpoint.post("explain", "/explain", {
      payload: RunNeed,
      success: ExplanationView,
      error: [...withBody]
    }).annotate(OpenApi.Summary, "Which node would get a run, and why not the others; runs nothing")
  )
  .prefix("/admin/v1")

/** Where the OpenAPI document is. */
export const OPENAPI_PATH = "/admin/v1/openapi.json"

export const AdminApi = HttpApi.make("iop-edge-admin")
  .add(Nodes, Runs)
  .annotateMerge(
    OpenApi.annotations({
      title: "IOP edge: admin API",
      version: "1",
      description:
        "Nodes, runs and their events. Send an API key as `Authorization: Bearer KEY` or `x-api-key`; POST needs `Content-Type: application/json`."
    })
  )
