// What the consumers of a run see: the edge's own events (queued, dispatched, interrupted, resumed), then those of one attempt.
import type {
  CancelledEvent,
  CompletedEvent,
  DeltaEvent,
  StartedEvent,
  UsageEvent
} from "@iop/platform-common/protocol/RunEvent"
import type { RunFailure } from "./RunFailure.ts"

/** The run waits for a slot. */
export interface QueuedEvent {
  readonly type: "queued"
  /** Runs before this one in its queue. */
  readonly ahead: number
}

/** The run was given to a node. A second one follows when the run is given to another. */
export interface DispatchedEvent {
  readonly type: "dispatched"
  /** Alias of the node. */
  readonly node: string
  /** From 1. */
  readonly attempt: number
  /** Time from submission, in milliseconds. */
  readonly queueMs: number
}

/** The link to the node is lost; the node may come back with the run. */
export interface InterruptedEvent {
  readonly type: "interrupted"
  /** Alias of the node. */
  readonly node: string
  /** Why, for a person. */
  readonly reason: string
  /** How long the run waits for it, in milliseconds. */
  readonly graceMs: number
}

/** The node came back and goes on where it was. */
export interface ResumedEvent {
  readonly type: "resumed"
  readonly node: string
}

/** The run ended badly. */
export interface FailedEvent extends RunFailure {
  readonly type: "failed"
}

export type RunEvent =
  | QueuedEvent
  | DispatchedEvent
  | InterruptedEvent
  | ResumedEvent
  | StartedEvent
  | DeltaEvent
  | UsageEvent
  | CompletedEvent
  | FailedEvent
  | CancelledEvent

/** An event with its place in the run's relay: from 1, without gaps, the same for every consumer. */
export interface RelayedEvent {
  readonly seq: number
  readonly event: RunEvent
}
