// What an adapter author writes: a kind, and how to start one configured adapter. A started adapter turns a
// run into a stream of events; everything else of the protocol (numbering, flow control, resumption, the
// single terminal event) is the SDK's.

import type {
  AdapterConfig,
  CliAdapterSettings,
  MockAdapterSettings,
  OllamaAdapterSettings,
  OpenaiAdapterSettings
} from "@iop/platform-common/gen/iop/v1/node_config_pb"
import type { RunInput } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import type { NodeFailureCode, NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import type { Scope } from "effect"
import { Data, type Effect, type Stream } from "effect"

/** A JSON object, as settings and parameters carry it. */
export type JsonSettings = { readonly [key: string]: JsonValue }

/** A JSON value. */
export type JsonValue = string | number | boolean | null | JsonSettings | ReadonlyArray<JsonValue>

/** The settings that the edge sends for the kinds that the protocol knows. */
export interface KnownSettings {
  readonly mock: MockAdapterSettings
  readonly openai: OpenaiAdapterSettings
  readonly ollama: OllamaAdapterSettings
  readonly cli: CliAdapterSettings
}

/** The settings of a kind: typed for the protocol's own kinds, a JSON object for every other. */
export type SettingsOf<Kind extends string> = Kind extends keyof KnownSettings
  ? KnownSettings[Kind]
  : JsonSettings

/** What an adapter can say about itself; see `AdapterContext.report`. */
export interface AdapterReport {
  readonly state: "starting" | "ready" | "degraded" | "unavailable"
  /** Why it is not ready, for a person. */
  readonly reason?: string
  /** What it offers now; absent: as reported before, at first the configured targets. */
  readonly targets?: ReadonlyArray<TargetOffer>
}

/** Something that an adapter executes: a model of a server, a profile of a command. */
export interface TargetOffer {
  readonly name: string
  /** Well-known words: chat, completion, embedding, tools, vision, reasoning. */
  readonly capabilities?: ReadonlyArray<string>
  /** Context length in tokens; absent: unknown. */
  readonly contextLength?: number
}

/** What an adapter knows about its own configuration. */
export interface AdapterContext {
  /** The adapter's name in the edge's configuration. */
  readonly name: string
  /** Runs in flight that the edge allows; the SDK enforces it. */
  readonly slots: number
  /** The targets to offer; empty: those that the adapter discovers. */
  readonly targets: ReadonlyArray<string>
  /** How often to look at the backend, in milliseconds; the edge's to set. */
  readonly probeIntervalMs: number
  /**
   * Publishes a change of state or targets. Without any report an adapter is ready with its configured targets
   * as soon as `start` returns. Cheap: equal reports are dropped, bursts are sent as one.
   */
  readonly report: (report: AdapterReport) => Effect.Effect<void>
}

/** A run, as an adapter sees it. */
export interface AdapterRun {
  readonly runId: string
  /** From 1; a run that another node could not finish comes with the next number. */
  readonly attempt: number
  readonly target: string
  readonly input: RunInput
  /** Whether somebody reads along. If not, the SDK gathers the deltas by itself; a backend may be asked accordingly. */
  readonly stream: boolean
  /** Runs of one session like to meet the same cache. */
  readonly session: string | undefined
  /** What is left of the run's total time in milliseconds, measured by the edge, which also enforces it. */
  readonly deadlineMs: number | undefined
  /** W3C traceparent. */
  readonly traceparent: string | undefined
}

/** Ends a run as failed. */
export class AdapterFailure extends Data.TaggedError("AdapterFailure")<{
  readonly code: NodeFailureCode
  /** For a person: what, where, what to do. Never a secret. */
  readonly message: string
  /** Whether the same run may succeed on another attempt. */
  readonly retryable: boolean
  /** The backend's HTTP status. */
  readonly backendStatus?: number
  readonly backendCode?: string
  /** The backend's advice when to try again. */
  readonly retryAfterMs?: number
}> {}

/** One started adapter. */
export interface AdapterInstance {
  /**
   * Executes a run. The SDK adds `started` before the first event if the adapter doesn't yield it, `completed`
   * (finish reason stop) if the stream ends without a terminal event, `failed` if it fails or dies. A cancel
   * interrupts the stream: release the backend in finalizers, yield nothing more; the SDK adds `cancelled`.
   * The stream is pulled only while the run's window has room, so that a slow consumer slows the backend.
   */
  readonly run: (run: AdapterRun) => Stream.Stream<NodeRunEvent, AdapterFailure>
}

/** A kind of adapter, ready to be started any number of times. Made by `defineAdapter`. */
export interface Adapter {
  readonly kind: string
  /** Starts one configured adapter; its scope closes when the configuration drops or changes it. */
  readonly start: (
    settings: AdapterConfig["settings"],
    context: AdapterContext
  ) => Effect.Effect<AdapterInstance, AdapterFailure, Scope.Scope>
}

/** What `defineAdapter` takes. */
export interface AdapterDefinition<Kind extends string> {
  /** The adapter type in the edge's configuration: `mock`, `openai`, `ollama`, `cli`, or the kind of a custom adapter. */
  readonly kind: Kind
  /**
   * Starts one configured adapter. A failure is reported as unavailable with its message and tried again every
   * probe interval; an adapter whose backend is merely absent should start and report `unavailable` itself.
   */
  readonly start: (
    settings: SettingsOf<Kind>,
    context: AdapterContext
  ) => Effect.Effect<AdapterInstance, AdapterFailure, Scope.Scope>
}

/**
 * Defines a kind of adapter.
 *
 * @example
 * defineAdapter({
 *   kind: "shout",
 *   start: () => Effect.succeed({
 *     run: (run) => Stream.make(textDelta(inputText(run.input).toUpperCase()))
 *   })
 * })
 */
export const defineAdapter = <const Kind extends string>(definition: AdapterDefinition<Kind>): Adapter => ({
  kind: definition.kind,
  // The agent starts an adapter only with settings of its own kind, so that the narrowing holds.
  start: (settings, context) =>
    definition.start(
      (settings.case === "custom" ? (settings.value.settings ?? {}) : settings.value) as SettingsOf<Kind>,
      context
    )
})
