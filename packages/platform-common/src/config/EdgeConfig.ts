// The configuration of an edge: one schema, of which its types, its errors, its JSON Schema and its documentation are
// made. Keys are snake_case in the file and in the decoded value alike. Rules that span several keys (secrets that
// occur twice, routes that lead nowhere) are in `checkConfig.ts`.

import { Schema } from "effect"
import { byteSizeText } from "./ByteSizeText.ts"
import { DurationOrZeroText, DurationText } from "./DurationText.ts"
import * as Default from "./defaults.ts"
import { LinkConfig } from "./LinkConfig.ts"
import { ListenConfig } from "./ListenConfig.ts"
import { NodeConfig } from "./NodeConfig.ts"
import { FilledText, HttpUrl, Identifier, Labels, TargetName, YesNo } from "./names.ts"
import { RunsConfig } from "./RunsConfig.ts"
import { SecretText } from "./SecretText.ts"
import { optional, required, section, setting } from "./setting.ts"

export type { AdapterConfig, AdapterType, CliProfileConfig } from "./AdapterConfig.ts"
export type { LinkConfig } from "./LinkConfig.ts"
export type { ListenConfig, TlsConfig } from "./ListenConfig.ts"
export type { NodeConfig, NodeRuntimeConfig } from "./NodeConfig.ts"
export type { CircuitConfig, RunsConfig } from "./RunsConfig.ts"

/** The edge itself. */
export const EdgeSection = Schema.Struct({
  id: setting(Identifier, Default.EDGE_ID, "The edge's name in listings and towards nodes."),
  drain_timeout: setting(
    DurationOrZeroText,
    Default.EDGE_DRAIN_TIMEOUT,
    "How long runs may take to finish when the edge stops."
  )
}).annotate({ expected: "a map" })

/** A key that HTTP clients show. After loading `key` is always there: a `key_file` was read into it. */
export const ApiKeyConfig = Schema.Struct({
  name: required(Identifier, "Who holds the key; shown in logs and run records."),
  key: optional(SecretText, "The key. Best taken from a variable of the environment."),
  key_file: optional(FilledText, "A file with the key, relative to this file.")
}).annotate({ expected: "a map with name and key" })
export type ApiKeyConfig = typeof ApiKeyConfig.Type

/** An external model name and where it leads. */
export const RouteConfig = Schema.Struct({
  model: required(TargetName, "The model name that clients use."),
  adapter: required(Identifier, "The adapter that runs it."),
  target: required(TargetName, "The adapter's target."),
  labels: setting(Labels, {}, "Only nodes that have all of these labels.")
}).annotate({ expected: "a map with model, adapter and target" })
export type RouteConfig = typeof RouteConfig.Type

/** The HTTP boundary. */
export const HttpConfig = Schema.Struct({
  headers_timeout: setting(
    DurationText,
    Default.HTTP_HEADERS_TIMEOUT,
    "How long a client may take to send its headers."
  ),
  body_timeout: setting(
    DurationText,
    Default.HTTP_BODY_TIMEOUT,
    "How long a client may take to send a whole request."
  ),
  max_body: setting(
    byteSizeText(1024, 256 * 1024 * 1024),
    Default.HTTP_MAX_BODY,
    "The largest request body."
  ),
  status_hold: setting(
    DurationOrZeroText,
    Default.HTTP_STATUS_HOLD,
    "How long a stream's status line waits for the first output, so that early failures have a status of their own."
  ),
  sse_comment: setting(DurationText, Default.HTTP_SSE_COMMENT, "A silent stream gets a comment this often.")
}).annotate({ expected: "a map" })
export type HttpConfig = typeof HttpConfig.Type

const levels = ["trace", "debug", "info", "warn", "error"] as const
const formats = ["auto", "json", "pretty"] as const

/** The log, always on stderr. */
export const LogConfig = Schema.Struct({
  level: setting(
    Schema.Literals(levels).annotate({ expected: `one of ${levels.join(", ")}` }),
    Default.LOG_LEVEL,
    "The least important entries that are written."
  ),
  format: setting(
    Schema.Literals(formats).annotate({ expected: `one of ${formats.join(", ")}` }),
    Default.LOG_FORMAT,
    "auto: pretty at a terminal, JSON lines elsewhere."
  ),
  text: setting(YesNo, Default.LOG_TEXT, "Whether prompts and answers are logged at level debug.")
}).annotate({ expected: "a map" })
export type LogConfig = typeof LogConfig.Type

/** Where traces go. */
export const TracingConfig = Schema.Struct({
  otlp_url: optional(HttpUrl, "An OTLP collector over HTTP, such as http://127.0.0.1:4318; none: no traces."),
  service_name: setting(FilledText, Default.TRACING_SERVICE_NAME, "The name under which traces arrive.")
}).annotate({ expected: "a map" })
export type TracingConfig = typeof TracingConfig.Type

/** The whole file. */
export const EdgeConfig = Schema.Struct({
  edge: section(EdgeSection, "The edge itself."),
  listen: section(ListenConfig, "Where the edge listens."),
  api_keys: setting(
    Schema.Array(ApiKeyConfig).annotate({ expected: "a list of keys" }),
    [],
    "Keys of HTTP clients. None: whoever reaches the listener may use it."
  ),
  nodes: setting(
    Schema.Array(NodeConfig).annotate({ expected: "a list of nodes" }),
    [],
    "Every node that may register."
  ),
  routes: setting(
    Schema.Array(RouteConfig).annotate({ expected: "a list of routes" }),
    [],
    "Model names for clients of an OpenAI-compatible API, which this version does not have yet: checked, and not used."
  ),
  link: section(LinkConfig, "The rules of the links between nodes and the edge."),
  runs: section(RunsConfig, "The clocks and limits of runs."),
  http: section(HttpConfig, "The HTTP boundary."),
  log: section(LogConfig, "The log, always on stderr."),
  tracing: section(TracingConfig, "Where traces go.")
}).annotate({ expected: "a map of sections such as listen, nodes and routes" })

/** A checked configuration with all defaults filled in. */
export type EdgeConfig = typeof EdgeConfig.Type
