// What the run and the registry may do with a node's connection. The transport implements it; nothing above the
// transport knows frames or sockets.

import type { RunInput } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"

/** Everything a node needs to execute one attempt of a run. */
export interface RunDispatch {
  readonly runId: string
  /** From 1. */
  readonly attempt: number
  readonly adapter: string
  readonly target: string
  readonly input: RunInput
  readonly stream: boolean
  readonly session: string
  /** What is left of the run's total time; 0: no limit. */
  readonly deadlineMs: number
  readonly traceparent: string
}

/**
 * Receives the events of one attempt. Calls come in the order of the link; `onReadEnd` follows the last event of
 * each socket read that had events of this attempt, so that consumers are woken once per read.
 */
export interface AttemptSink {
  /** `bytes` is the length of the event's frame, the unit of the run window. */
  readonly onEvent: (seq: number, event: NodeRunEvent, bytes: number) => void
  readonly onReadEnd: () => void
}

export type CancelCode = "caller" | "deadline" | "slow_consumer" | "protocol_error" | "draining"

/** Why the edge ends a link, as it is told to the node. */
export type LinkEnd = "shutdown" | "replaced" | "protocol_error" | "heartbeat" | "taken_over"

/** One registered connection of one node. A handle means something only on its own link. */
export interface NodeLink {
  /** Larger for each new link of the edge. */
  readonly epoch: number
  /** `address:port` of the peer. */
  readonly remote: string
  readonly agent: string
  /** Sends the run and routes its events to `sink`. Sends nothing when the request can't go over
   * the wire (over the frame limit, nested too deeply) and says why, for a person. */
  readonly sendRun: (
    dispatch: RunDispatch,
    sink: AttemptSink
  ) => { readonly handle: number } | { readonly unsendable: string }
  /** Routes the events of a run that the node still holds to `sink`; used while registering. Returns the handle. */
  readonly adopt: (sink: AttemptSink) => number
  /** Acknowledges all events of the run up to `seq`. */
  readonly ack: (handle: number, seq: number) => void
  /** Removes the run's request when it has not left yet ("removed"), else tells the node to stop it ("sent"). */
  readonly cancel: (handle: number, code: CancelCode, reason: string) => "removed" | "sent"
  /** The handle is over: what still comes for it is counted as an event of an ended run. */
  readonly release: (handle: number) => void
  /** Asks the node to finish its runs within `timeoutMs`. */
  readonly drain: (timeoutMs: number, reason: string) => void
  /** Says Goodbye and closes, within a bound. */
  readonly end: (code: LinkEnd, message: string) => void
}
