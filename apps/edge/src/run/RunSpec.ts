// What somebody wants to be executed, and what the edge tells about a run.

import type { RunInput } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import type { FinishReason, TokenUsage } from "@iop/platform-common/protocol/RunEvent"
import type { SelectionReason } from "../node/selection.ts"
import type { RunFailure } from "./RunFailure.ts"

/** A run as it is submitted. */
export interface RunSpec {
  readonly adapter: string
  readonly target: string
  readonly input: RunInput
  /** Labels that the node must have. */
  readonly labels?: Readonly<Record<string, string>>
  /** Runs of one session like to meet the same node. */
  readonly session?: string
  /** Whether the consumer wants the text as it comes. Default true. */
  readonly stream?: boolean
  /** Whether the run goes on when its caller leaves. Default false. */
  readonly detached?: boolean
  /** Who asks: the name of an API key, or the surface. Shown in records and logs. */
  readonly caller: string
  /** Total time in milliseconds; absent: as configured. */
  readonly timeoutMs?: number
  readonly traceparent?: string
}

export type RunPhase =
  | "queued"
  | "dispatched"
  | "started"
  | "streaming"
  | "cancelling"
  | "completed"
  | "failed"
  | "cancelled"

/** Why a node was or was not chosen. */
export interface NodeVerdict {
  readonly node: string
  readonly alias: string
  readonly chosen: boolean
  readonly reason: SelectionReason
  /** The reason as a sentence. */
  readonly message: string
}

/** One execution of the run on one node. */
export interface AttemptRecord {
  readonly attempt: number
  readonly node: string
  /** From dispatch to the end of the attempt, in milliseconds; absent while it goes on. */
  readonly durationMs?: number
  /** How it ended, when it is not the run's own end. */
  readonly outcome?: string
}

/** A run as it is now, or as it ended. Times of day are for people; durations are measured on the monotonic clock. */
export interface RunSnapshot {
  readonly id: string
  readonly adapter: string
  readonly target: string
  readonly caller: string
  readonly session?: string
  readonly detached: boolean
  readonly phase: RunPhase
  /** Alias of the node that has or had it. */
  readonly node?: string
  readonly attempt: number
  readonly attempts: ReadonlyArray<AttemptRecord>
  /** Wall clock, ISO 8601. */
  readonly submittedAt: string
  readonly queueMs?: number
  readonly firstEventMs?: number
  readonly totalMs: number
  readonly events: number
  readonly usage?: TokenUsage
  readonly finishReason?: FinishReason
  readonly failure?: RunFailure
  readonly cancelReason?: string
  /** The run is over but its node has not answered the cancel: its slot is still taken. */
  readonly slotHeld: boolean
  /** How the last selection judged each node. */
  readonly selection: ReadonlyArray<NodeVerdict>
}
