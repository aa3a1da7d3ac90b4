// The state machine of a run: every way in which events, link, cancel, clocks and shutdown can meet, decided in one
// place and without effects. The run carries out the actions; nothing else changes a run's phase.
//
//  phase      | input                            | next       | actions
//  -----------+----------------------------------+------------+----------------------------------------------
//  queued     | granted                          | dispatched |
//             | cancel                           | final      | finish cancelled
//             | clock queue, clock total         | final      | finish queue_timeout (or no_node_available), run_timeout
//             | drain, stop                      | final      | finish draining
//  dispatched | started                          | started    | hold
//             | failed, cancelled                | as started |
//             | delta, usage, completed          | final      | cancel_node, finish protocol_error
//  started    | usage                            | started    | hold
//             | delta                            | streaming  | relay (what was held first)
//             | completed                        | final      | relay, end_attempt, finish completed
//             | failed, may fail over            | queued     | end_attempt, requeue
//             | failed, may not                  | final      | end_attempt, finish adapter_error or invalid_input
//             | cancelled, not asked for         | final      | end_attempt, finish adapter_error
//             | started again                    | final      | cancel_node, finish protocol_error
//  streaming  | delta, usage                     | streaming  | relay
//             | completed                        | final      | relay, end_attempt, finish completed
//             | failed                           | final      | end_attempt, finish adapter_error or invalid_input
//             | cancelled, not asked for         | final      | end_attempt, finish adapter_error
//             | started again                    | final      | cancel_node, finish protocol_error
//  the three  | violation                        | final      | cancel_node, finish protocol_error
//  above      | cancel                           | cancelling | cancel_node
//  ("active") | clock first_event, idle, total   | final      | cancel_node, finish with that clock's code
//             | slow_consumer                    | final      | cancel_node, finish slow_consumer
//             | stop                             | final      | cancel_node, finish draining
//             | never_sent (too large)           | final      | end_attempt, finish invalid_input
//             | link_lost for good               | see below  |
//             | link_lost, may come back         | same, lost | (or, before the first delta, failed over at once
//             |                                  |            |  when another node is connected)
//  lost       | resumed                          | same       |
//             | not_resumed, clock grace         | see below  |
//             | cancel, clocks, stop             | final      | end_attempt, finish
//  node gone  | before a delta, may fail over    | queued     | end_attempt, requeue
//             | else                             | final      | end_attempt, finish node_lost
//  cancelling | completed, failed, cancelled     | final      | end_attempt, finish cancelled
//             | link_lost, never_left            | final      | end_attempt, finish cancelled
//             | clock cancel, stop               | final      | finish cancelled (the slot stays with the attempt)
//  final      | anything                         | final      |
import type { FinishReason, NodeRunEvent, TokenUsage } from "@iop/platform-common/protocol/RunEvent"
import type { CancelCode } from "../node/NodeLink.ts"
import type { FailureCode, RunFailure } from "./RunFailure.ts"

/** The clocks of a run; each names the limit that was passed. */
export type RunClock = "queue" | "first_event" | "idle" | "total" | "cancel" | "grace"

export type RunOutcome =
  | { readonly type: "completed"; readonly finishReason: FinishReason; readonly usage?: TokenUsage }
  | { readonly type: "failed"; readonly failure: RunFailure }
  | { readonly type: "cancelled"; readonly reason: string }

export type ActivePhase = "dispatched" | "started" | "streaming"

export type RunState =
  | { readonly phase: "queued" }
  /** `lost`: the link is down and the node may come back with the run. */
  | { readonly phase: ActivePhase; readonly lost: boolean }
  | { readonly phase: "cancelling"; readonly reason: string }
  | { readonly phase: "final"; readonly outcome: RunOutcome }

export type MachineInput =
  | { readonly type: "granted" }
  | { readonly type: "event"; readonly event: NodeRunEvent }
  /** The node broke a rule of the event stream: a gap, a window overrun. */
  | { readonly type: "violation"; readonly message: string }
  | { readonly type: "link_lost"; readonly reason: string; readonly mayResume: boolean }
  | { readonly type: "resumed" }
  /** The node came back without the run. */
  | { readonly type: "not_resumed"; readonly reason: string }
  | { readonly type: "cancel"; readonly reason: string }
  /** The request was taken back before it left. */
  | { readonly type: "never_left" }
  /** The request can't be sent to any node. */
  | { readonly type: "never_sent"; readonly message: string }
  | {
      readonly type: "clock"
      readonly clock: RunClock
      readonly measuredMs: number
      readonly detail: string
      /** Set when the clock's own code would not be the truth: no node could have taken the run by waiting. */
      readonly code?: FailureCode
    }
  | { readonly type: "slow_consumer"; readonly message: string }
  | { readonly type: "drain" }
  | { readonly type: "stop" }

export type MachineAction =
  /** Keep the event until the run is committed to this attempt. */
  | { readonly do: "hold"; readonly event: NodeRunEvent }
  /** Give the consumers what was held, then this. */
  | { readonly do: "relay"; readonly event: NodeRunEvent }
  /** Forget what was held and wait for another node. */
  | { readonly do: "requeue"; readonly reason: string }
  /** Tell the node to stop; the attempt keeps its slot until the node answers or its link ends. */
  | { readonly do: "cancel_node"; readonly code: CancelCode; readonly reason: string }
  /** The node is done with the attempt, or gone: its slot is free. */
  | {
      readonly do: "end_attempt"
      readonly outcome: "completed" | "failed" | "cancelled" | "failed_over" | "node_lost"
    }
  | { readonly do: "finish"; readonly outcome: RunOutcome }

export interface Transition {
  readonly state: RunState
  readonly actions: ReadonlyArray<MachineAction>
}

/** What the machine needs to know about the world, asked only when it decides something. */
export interface MachineContext {
  /** Whether attempts are left and another node could take the run, now or soon. */
  readonly mayFailOver: () => boolean
  /** Alias of the node that has the run, for messages. */
  readonly node: string
}

export const initialState: RunState = { phase: "queued" }

const clockCodes: Record<Exclude<RunClock, "cancel" | "grace">, FailureCode> = {
  queue: "queue_timeout",
  first_event: "first_event_timeout",
  idle: "idle_timeout",
  total: "run_timeout"
}

/** One step. Inputs that mean nothing in a state leave it as it is. */
export const step = (state: RunState, input: MachineInput, context: MachineContext): Transition => {
  switch (state.phase) {
    case "queued":
      return stepQueued(state, input)
    case "dispatched":
    case "started":
    case "streaming":
      return stepActive(state, input, context)
    case "cancelling":
      return stepCancelling(state, input)
    case "final":
      return stay(state)
  }
}

const stay = (state: RunState): Transition => ({ state, actions: [] })

const finish = (outcome: RunOutcome, ...before: ReadonlyArray<MachineAction>): Transition => ({
  state: { phase: "final", outcome },
  actions: [...before, { do: "finish", outcome }]
})

const failed = (code: FailureCode, message: string, retryable: boolean): RunOutcome => ({
  type: "failed",
  failure: { code, message, retryable }
})

const drainingOutcome = failed(
  "draining",
  "the edge is stopping; submit the run again to another edge or later",
  true
)

const clockOutcome = (input: Extract<MachineInput, { type: "clock" }>): RunOutcome | undefined =>
  input.clock === "cancel" || input.clock === "grace"
    ? undefined
    : failed(input.code ?? clockCodes[input.clock], input.detail, true)

const stepQueued = (state: RunState, input: MachineInput): Transition => {
  switch (input.type) {
    case "granted":
      return { state: { phase: "dispatched", lost: false }, actions: [] }
    case "cancel":
      return finish({ type: "cancelled", reason: input.reason })
    case "clock": {
      const outcome = clockOutcome(input)
      return outcome === undefined ? stay(state) : finish(outcome)
    }
    case "drain":
    case "stop":
      return finish(drainingOutcome)
    case "slow_consumer":
      return finish(failed("slow_consumer", input.message, false))
    default:
      return stay(state)
  }
}

const stepActive = (
  state: Extract<RunState, { phase: ActivePhase }>,
  input: MachineInput,
  context: MachineContext
): Transition => {
  /** While the link is down there is nobody to tell, and nothing to wait for. */
  const tell = (code: CancelCode, reason: string): MachineAction =>
    state.lost ? { do: "end_attempt", outcome: "cancelled" } : { do: "cancel_node", code, reason }
  switch (input.type) {
    case "event":
      return state.lost ? stay(state) : stepEvent(state, input.event, context)
    case "violation":
      return protocolError(input.message, context)
    case "link_lost":
      if (input.mayResume && !(state.phase !== "streaming" && context.mayFailOver())) {
        return { state: { ...state, lost: true }, actions: [] }
      }
      return nodeGone(state, input.reason, context)
    case "resumed":
      return { state: { ...state, lost: false }, actions: [] }
    case "not_resumed":
      return state.lost ? nodeGone(state, input.reason, context) : stay(state)
    case "cancel":
      return state.lost
        ? finish({ type: "cancelled", reason: input.reason }, { do: "end_attempt", outcome: "cancelled" })
        : {
            state: { phase: "cancelling", reason: input.reason },
            actions: [{ do: "cancel_node", code: "caller", reason: input.reason }]
          }
    case "clock": {
      if (input.clock === "grace") return state.lost ? nodeGone(state, input.detail, context) : stay(state)
      const outcome = clockOutcome(input)
      return outcome === undefined ? stay(state) : finish(outcome, tell("deadline", input.detail))
    }
    case "slow_consumer":
      return finish(failed("slow_consumer", input.message, false), tell("slow_consumer", input.message))
    case "never_sent":
      return finish(failed("invalid_input", input.message, false), { do: "end_attempt", outcome: "failed" })
    case "stop":
      return finish(drainingOutcome, tell("draining", "the edge is stopping"))
    default:
      return stay(state)
  }
}

const stepEvent = (
  state: Extract<RunState, { phase: ActivePhase }>,
  event: NodeRunEvent,
  context: MachineContext
): Transition => {
  switch (event.type) {
    case "started":
      if (state.phase !== "dispatched") return protocolError("a second started event", context)
      return { state: { phase: "started", lost: false }, actions: [{ do: "hold", event }] }
    case "delta":
      if (state.phase === "dispatched") return protocolError("a delta before started", context)
      return { state: { phase: "streaming", lost: false }, actions: [{ do: "relay", event }] }
    case "usage":
      if (state.phase === "dispatched") return protocolError("usage before started", context)
      return { state, actions: [{ do: state.phase === "started" ? "hold" : "relay", event }] }
    case "completed":
      if (state.phase === "dispatched") return protocolError("completed before started", context)
      return finish(
        {
          type: "completed",
          finishReason: event.finishReason,
          ...(event.usage === undefined ? {} : { usage: event.usage })
        },
        { do: "relay", event },
        { do: "end_attempt", outcome: "completed" }
      )
    case "failed":
      if (state.phase !== "streaming" && event.retryable && context.mayFailOver()) {
        return {
          state: { phase: "queued" },
          actions: [
            { do: "end_attempt", outcome: "failed_over" },
            { do: "requeue", reason: `${event.code} at ${context.node}: ${event.message}` }
          ]
        }
      }
      return finish(
        {
          type: "failed",
          failure: {
            code: event.code === "invalid_input" ? "invalid_input" : "adapter_error",
            message: `${context.node}: ${event.message}`,
            retryable: event.retryable,
            ...(event.retryAfterMs === undefined ? {} : { retryAfterMs: event.retryAfterMs }),
            ...(event.backendStatus === undefined ? {} : { backendStatus: event.backendStatus }),
            ...(event.backendCode === undefined ? {} : { backendCode: event.backendCode })
          }
        },
        { do: "end_attempt", outcome: "failed" }
      )
    case "cancelled":
      return finish(
        failed("adapter_error", `${context.node} stopped the run by itself: ${event.reason}`, true),
        { do: "end_attempt", outcome: "failed" }
      )
  }
}

const stepCancelling = (
  state: Extract<RunState, { phase: "cancelling" }>,
  input: MachineInput
): Transition => {
  const outcome: RunOutcome = { type: "cancelled", reason: state.reason }
  const ended: MachineAction = { do: "end_attempt", outcome: "cancelled" }
  switch (input.type) {
    case "event":
      return input.event.type === "completed" ||
        input.event.type === "failed" ||
        input.event.type === "cancelled"
        ? finish(outcome, ended)
        : stay(state)
    case "link_lost":
    case "not_resumed":
    case "never_left":
    case "never_sent":
      return finish(outcome, ended)
    case "clock":
      return input.clock === "cancel" ? finish(outcome) : stay(state)
    case "violation":
    case "stop":
      return finish(outcome)
    default:
      return stay(state)
  }
}

const protocolError = (message: string, context: MachineContext): Transition =>
  finish(failed("protocol_error", `${context.node} broke the protocol: ${message}`, true), {
    do: "cancel_node",
    code: "protocol_error",
    reason: message
  })

const nodeGone = (
  state: Extract<RunState, { phase: ActivePhase }>,
  reason: string,
  context: MachineContext
): Transition =>
  state.phase !== "streaming" && context.mayFailOver()
    ? {
        state: { phase: "queued" },
        actions: [
          { do: "end_attempt", outcome: "node_lost" },
          { do: "requeue", reason: `lost ${context.node}: ${reason}` }
        ]
      }
    : finish(failed("node_lost", `lost ${context.node} during the run: ${reason}`, true), {
        do: "end_attempt",
        outcome: "node_lost"
      })
