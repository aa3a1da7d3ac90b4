// One accepted run: it feeds the state machine, carries out its actions, and owns the run's clocks and relay.
import type { RunInput } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import { isTerminal, type NodeRunEvent, type TokenUsage } from "@iop/platform-common/protocol/RunEvent"
import type { NodeEntry, SlotClaim } from "../node/NodeEntry.ts"
import type { NodeLink } from "../node/NodeLink.ts"
import { Attempt, type AttemptOwner } from "./Attempt.ts"
import { Relay, type RelayLimits, type RelayReader } from "./Relay.ts"
import type { RunEvent } from "./RunEvent.ts"
import type { RunFailure } from "./RunFailure.ts"
import type { AttemptOutcome } from "./RunObserver.ts"
import type { AttemptRecord, NodeVerdict, RunSnapshot, RunSpec } from "./RunSpec.ts"
import type { RunSpan } from "./RunTracing.ts"
import {
  initialState,
  type MachineAction,
  type MachineInput,
  type RunClock,
  type RunOutcome,
  type RunState,
  step
} from "./runMachine.ts"

/** The limits of a run; milliseconds on the monotonic clock. */
export interface RunLimits {
  readonly queueMs: number
  readonly firstEventMs: number
  readonly idleMs: number
  /** Undefined: a run may take as long as it wants. */
  readonly totalMs: number | undefined
  readonly cancelMs: number
  readonly resumeGraceMs: number
  readonly maxAttempts: number
  readonly runWindowBytes: number
  readonly relay: RelayLimits
}

/** What a run needs from the service that owns it. */
export interface RunHost {
  readonly limits: RunLimits
  readonly now: () => number
  readonly after: (ms: number, callback: () => void) => () => void
  /** Whether another node than those of `run.excluded` and `node` could take it, now or soon. */
  readonly hasAlternative: (run: Run, node: string) => boolean
  readonly enqueue: (run: Run, again: boolean) => void
  readonly dequeue: (run: Run) => void
  readonly queuedAhead: (run: Run) => number
  /** `fault`: what the node said went wrong, when the adapter is to blame; else empty. */
  readonly attemptEnded: (run: Run, attempt: Attempt, outcome: AttemptOutcome, fault: string) => void
  /** The run is over but its node has not answered (true); it has, or its link is gone (false). */
  readonly orphaned: (run: Run, is: boolean) => void
  /** The first delta of the attempt came. */
  readonly delivering: (attempt: Attempt) => void
  readonly finished: (run: Run) => void
  readonly slowConsumer: (run: Run) => void
  readonly acknowledgeLater: (attempt: Attempt) => void
  readonly duplicate: (run: Run, attempt: Attempt) => void
}

/** After an alarm the sockets get one turn before a node is blamed: the edge itself may have been paused. */
const SECOND_LOOK_MS = 1

/** Frame length counted for events that the edge makes itself. */
const OWN_EVENT_BYTES = 64

const noVerdicts: ReadonlyArray<NodeVerdict> = []

export class Run implements AttemptOwner {
  readonly id: string
  /** What was asked for; the input itself is forgotten when the run ends. */
  readonly spec: Omit<RunSpec, "input">
  readonly span: RunSpan | undefined
  readonly adapter: string
  readonly target: string
  readonly signatureBase: string
  /** Nodes that failed this run. */
  readonly excluded = new Set<string>()
  readonly relay: Relay
  selection: () => ReadonlyArray<NodeVerdict> = () => noVerdicts
  readonly #host: RunHost
  #input: RunInput | undefined
  #state: RunState = initialState
  #attempt: Attempt | undefined
  /** An attempt that the run no longer waits for but whose node has not answered. */
  #orphan: Attempt | undefined
  readonly #attempts: Array<AttemptRecord> = []
  #attemptCount = 0
  #held: Array<{ readonly event: NodeRunEvent; readonly bytes: number }> = []
  #usage: TokenUsage | undefined
  readonly #submittedAt: number
  readonly #submittedDate = new Date()
  #queuedAt: number
  #queueMs: number | undefined
  #firstEventMs: number | undefined
  #endedAt: number | undefined
  #lastEventAt = 0
  #linkLostAt = 0
  #detail = ""
  readonly #alarms = new Map<RunClock, () => void>()

  constructor(id: string, { input, ...spec }: RunSpec, host: RunHost, span?: RunSpan) {
    this.id = id
    this.spec = spec
    this.span = span
    this.#input = input
    this.adapter = spec.adapter
    this.target = spec.target
    this.signatureBase = `${spec.target}\u0000${JSON.stringify(spec.labels ?? {})}`
    this.#host = host
    this.#submittedAt = host.now()
    this.#queuedAt = this.#submittedAt
    this.relay = new Relay(host.limits.relay, {
      now: host.now,
      after: host.after,
      ownerRead: () => this.#attempt?.acknowledge(),
      left: (reader) => this.#readerLeft(reader),
      slow: (reader, failure) => this.#readerSlow(reader, failure)
    })
    const total = spec.timeoutMs ?? host.limits.totalMs
    if (total !== undefined) this.#arm("total", total)
  }

  get signature(): string {
    return this.excluded.size === 0 ? this.signatureBase : `${this.signatureBase}\u0000${this.id}`
  }

  get state(): RunState {
    return this.#state
  }

  get final(): boolean {
    return this.#state.phase === "final"
  }

  get attempt(): Attempt | undefined {
    return this.#attempt
  }

  get attemptCount(): number {
    return this.#attemptCount
  }

  /** Milliseconds from submission to the first dispatch. */
  get queueMs(): number {
    return this.#queueMs ?? 0
  }

  get runWindowBytes(): number {
    return this.#host.limits.runWindowBytes
  }

  /** What is left of the total time, in milliseconds; 0: no limit. */
  get deadlineMs(): number {
    const total = this.spec.timeoutMs ?? this.#host.limits.totalMs
    return total === undefined ? 0 : Math.max(1, Math.ceil(total - (this.#host.now() - this.#submittedAt)))
  }

  /** The run could not be dispatched at once: it waits. */
  wait(): void {
    this.#host.enqueue(this, false)
    this.#append({ type: "queued", ahead: this.#host.queuedAhead(this) })
    this.#armQueueClock()
  }

  /** A slot was claimed: the run is sent to its node. */
  dispatch(claim: SlotClaim, link: NodeLink): void {
    const input = this.#input
    if (input === undefined) throw new Error(`run ${this.id} is over and can't be dispatched`)
    const now = this.#host.now()
    this.#disarm("queue")
    this.#attemptCount += 1
    this.#queueMs ??= now - this.#submittedAt
    const attempt = new Attempt(this.#attemptCount, claim, now, this)
    this.#attempt = attempt
    attempt.link = link
    this.#lastEventAt = now
    this.#feed({ type: "granted" })
    const sent = link.sendRun(
      {
        runId: this.id,
        attempt: attempt.number,
        adapter: this.adapter,
        target: this.target,
        input,
        stream: this.spec.stream ?? true,
        session: this.spec.session ?? "",
        deadlineMs: this.deadlineMs,
        traceparent: this.span?.traceparent ?? this.spec.traceparent ?? ""
      },
      attempt
    )
    if ("unsendable" in sent) {
      // The link never saw it: there is no handle to release.
      attempt.link = undefined
      this.#feed({ type: "never_sent", message: sent.unsendable })
      return
    }
    attempt.handle = sent.handle
    this.#append({
      type: "dispatched",
      node: claim.entry.record.alias,
      attempt: attempt.number,
      queueMs: Math.round(now - this.#queuedAt)
    })
    this.#arm("first_event", this.#host.limits.firstEventMs)
    this.relay.wake()
  }

  cancel(reason: string): void {
    this.#feed({ type: "cancel", reason })
  }

  drain(): void {
    this.#feed({ type: "drain" })
  }

  stop(): void {
    this.#feed({ type: "stop" })
  }

  /** The link of the attempt is over. */
  linkLost(link: NodeLink, reason: string, mayResume: boolean): void {
    const orphan = this.#orphan
    if (orphan?.link === link) orphan.linkDown()
    const attempt = this.#attempt
    if (attempt?.link !== link) return
    attempt.linkDown()
    this.#linkLostAt = this.#host.now()
    this.#detail = reason
    this.#feed({ type: "link_lost", reason, mayResume })
    if (this.#isLost()) this.#arm("grace", this.#host.limits.resumeGraceMs)
  }

  /** Whether the run waits for this node to come back. */
  waitsFor(entry: NodeEntry): boolean {
    return this.#isLost() && this.#attempt?.claim.entry === entry
  }

  /** The node came back and holds the run. */
  resumed(link: NodeLink, handle: number, afterSeq: number): void {
    this.#attempt?.resume(link, handle, afterSeq)
    this.#disarm("grace")
    this.#lastEventAt = this.#host.now()
    this.#feed({ type: "resumed" })
  }

  /** The node came back without the run. */
  notResumed(reason: string): void {
    // A process that has forgotten the run may have it again.
    this.#feed({ type: "not_resumed", reason })
  }

  violation(message: string): void {
    this.#feed({ type: "violation", message })
    this.relay.wake()
  }

  onAttemptEvent(attempt: Attempt, event: NodeRunEvent, bytes: number): void {
    if (attempt !== this.#attempt) return
    if (this.#firstEventMs === undefined) {
      this.#firstEventMs = this.#host.now() - this.#submittedAt
    }
    if (this.#alarms.has("first_event")) {
      this.#disarm("first_event")
      this.#lastEventAt = this.#host.now()
      this.#arm("idle", this.#host.limits.idleMs)
    }
    if (event.type === "usage") this.#usage = event.usage
    // It proves that the node lives and says nothing: the run may still be given to another node.
    if (this.#state.phase === "started" && isEmpty(event)) return
    // The common case needs no decision.
    if (event.type === "delta" && this.#state.phase === "streaming") this.#append(event, bytes)
    else this.#feed({ type: "event", event }, bytes)
  }

  onViolation(attempt: Attempt, message: string): void {
    if (attempt === this.#attempt) this.violation(message)
  }

  onAttemptReadEnd(attempt: Attempt): void {
    if (attempt === this.#attempt) this.#lastEventAt = this.#host.now()
    this.relay.wake()
  }

  mayAcknowledge(): boolean {
    // What comes after a cancel is dropped: nobody is behind, and the node must get its answer through.
    return this.#state.phase === "cancelling" || this.#state.phase === "final" || !this.relay.ownerBehind
  }

  acknowledgeLater(attempt: Attempt): void {
    this.#host.acknowledgeLater(attempt)
  }

  onDuplicate(attempt: Attempt): void {
    this.#host.duplicate(this, attempt)
  }

  onOver(attempt: Attempt): void {
    if (this.#orphan !== attempt) return
    this.#orphan = undefined
    this.#host.orphaned(this, false)
  }

  snapshot(): RunSnapshot {
    const state = this.#state
    const outcome = state.phase === "final" ? state.outcome : undefined
    const attempt = this.#attempt ?? this.#orphan
    const lastNode = attempt?.claim.entry.record.alias ?? this.#attempts[this.#attempts.length - 1]?.node
    const usage = outcome?.type === "completed" ? (outcome.usage ?? this.#usage) : this.#usage
    return {
      id: this.id,
      adapter: this.adapter,
      target: this.target,
      caller: this.spec.caller,
      ...(this.spec.session === undefined ? {} : { session: this.spec.session }),
      detached: this.spec.detached ?? false,
      phase: state.phase === "final" ? state.outcome.type : state.phase,
      ...(lastNode === undefined ? {} : { node: lastNode }),
      attempt: this.#attemptCount,
      attempts:
        this.#attempt === undefined
          ? [...this.#attempts]
          : [
              ...this.#attempts,
              { attempt: this.#attempt.number, node: this.#attempt.claim.entry.record.alias }
            ],
      submittedAt: this.#submittedDate.toISOString(),
      ...(this.#queueMs === undefined ? {} : { queueMs: round(this.#queueMs) }),
      ...(this.#firstEventMs === undefined ? {} : { firstEventMs: round(this.#firstEventMs) }),
      totalMs: round((this.#endedAt ?? this.#host.now()) - this.#submittedAt),
      events: this.relay.lastSeq,
      ...(usage === undefined ? {} : { usage }),
      ...(outcome?.type === "completed" ? { finishReason: outcome.finishReason } : {}),
      ...(outcome?.type === "failed" ? { failure: outcome.failure } : {}),
      ...(outcome?.type === "cancelled" ? { cancelReason: outcome.reason } : {}),
      slotHeld: this.#orphan !== undefined,
      selection: this.selection()
    }
  }

  #isLost(): boolean {
    const state = this.#state
    return "lost" in state && state.lost
  }

  #feed(input: MachineInput, bytes = OWN_EVENT_BYTES): void {
    const attempt = this.#attempt
    const node = attempt?.claim.entry.record
    const { state, actions } = step(this.#state, input, {
      node: node?.alias ?? "no node",
      mayFailOver: () =>
        this.#attemptCount < this.#host.limits.maxAttempts &&
        (input.type === "not_resumed" || this.#host.hasAlternative(this, node?.id ?? ""))
    })
    const before = this.#state
    this.#state = state
    if (before.phase !== state.phase) this.#phaseChanged(state, input)
    for (const action of actions) this.#perform(action, bytes, input)
  }

  #phaseChanged(state: RunState, input: MachineInput): void {
    if (state.phase === "cancelling") {
      this.#disarm("first_event", "idle", "grace")
      this.#arm("cancel", this.#host.limits.cancelMs)
      this.#attempt?.acknowledge()
    }
    if (state.phase === "streaming" && this.#attempt !== undefined) {
      this.#attempt.delivered = true
      this.#host.delivering(this.#attempt)
    }
    if (state.phase === "queued") this.#disarm("first_event", "idle", "grace", "cancel")
    if (state.phase === "final") {
      this.#endedAt = this.#host.now()
      this.#input = undefined
      for (const disarm of this.#alarms.values()) disarm()
      this.#alarms.clear()
      if (input.type !== "granted") this.#host.dequeue(this)
    }
  }

  #perform(action: MachineAction, bytes: number, input: MachineInput): void {
    switch (action.do) {
      case "hold":
        this.#held.push({ event: action.event, bytes })
        return
      case "relay":
        this.#commit()
        // The terminal event of a run is its outcome, appended by `finish`.
        if (!isTerminal(action.event)) this.#append(action.event, bytes)
        return
      case "requeue": {
        this.#held = []
        this.#firstEventMs = undefined
        this.#queuedAt = this.#host.now()
        this.#host.enqueue(this, true)
        this.#armQueueClock()
        return
      }
      case "end_attempt":
        this.#endAttempt(action.outcome, input)
        return
      case "cancel_node":
        this.#cancelNode(action.code, action.reason)
        return
      case "finish":
        this.#finish(action.outcome, input)
        return
    }
  }

  #endAttempt(outcome: AttemptOutcome, input: MachineInput): void {
    const attempt = this.#attempt
    if (attempt === undefined) return
    this.#attempt = undefined
    const entry = attempt.claim.entry
    // A process that came back without the run is a new one and may have it again.
    if (outcome === "failed_over" || (outcome === "node_lost" && input.type !== "not_resumed")) {
      this.excluded.add(entry.record.id)
    }
    this.#record(attempt, outcome)
    attempt.end()
    const failure = input.type === "event" && input.event.type === "failed" ? input.event : undefined
    const fault = failure === undefined || failure.code === "invalid_input" ? "" : failure.message
    this.#host.attemptEnded(this, attempt, outcome, fault)
  }

  #cancelNode(code: Parameters<Attempt["cancel"]>[0], reason: string): void {
    const attempt = this.#attempt
    if (attempt === undefined) return
    if (this.#state.phase === "cancelling") {
      if (attempt.cancel(code, reason) === "over") this.#feed({ type: "never_left" })
      return
    }
    // The run is over, its node is not: the attempt keeps the slot until it answers.
    this.#orphanAttempt(attempt, "failed")
    attempt.cancel(code, reason)
  }

  #orphanAttempt(attempt: Attempt, outcome: AttemptOutcome): void {
    this.#attempt = undefined
    this.#record(attempt, outcome)
    attempt.orphaned = true
    attempt.acknowledge()
    this.#orphan = attempt
    this.#host.orphaned(this, true)
    this.#host.attemptEnded(this, attempt, outcome, "")
  }

  #record(attempt: Attempt, outcome: AttemptOutcome): void {
    this.#attempts.push({
      attempt: attempt.number,
      node: attempt.claim.entry.record.alias,
      durationMs: round(this.#host.now() - attempt.dispatchedAt),
      outcome
    })
  }

  #finish(outcome: RunOutcome, input: MachineInput): void {
    if (this.#attempt !== undefined) this.#orphanAttempt(this.#attempt, "cancelled")
    if (outcome.type === "completed") this.#commit()
    this.#held = []
    this.#append(terminalEvent(outcome, input))
    this.relay.seal()
    this.relay.wake()
    this.#host.finished(this)
  }

  #commit(): void {
    if (this.#held.length === 0) return
    const held = this.#held
    this.#held = []
    for (const { event, bytes } of held) if (!isTerminal(event)) this.#append(event, bytes)
  }

  #append(event: RunEvent, bytes = OWN_EVENT_BYTES): void {
    if (isEmpty(event)) return
    this.relay.append(event, bytes)
  }

  #readerLeft(reader: RelayReader): void {
    if (reader === this.owner && !this.final && this.spec.detached !== true) this.cancel("the caller left")
  }

  #readerSlow(reader: RelayReader, failure: RunFailure): void {
    this.#host.slowConsumer(this)
    if (this.final || reader !== this.owner || this.spec.detached === true) return
    // Somebody else still reads: the slow one ended alone.
    if (this.relay.readers > 0) return
    this.#feed({ type: "slow_consumer", message: failure.message })
  }

  /** The reader of whoever submitted the run. */
  owner: RelayReader | undefined

  #armQueueClock(): void {
    this.#arm("queue", this.#host.limits.queueMs)
  }

  #arm(clock: RunClock, ms: number, second = false): void {
    this.#disarm(clock)
    this.#alarms.set(
      clock,
      this.#host.after(ms, () => {
        this.#alarms.delete(clock)
        this.#expired(clock, second)
      })
    )
  }

  #disarm(...clocks: ReadonlyArray<RunClock>): void {
    for (const clock of clocks) {
      this.#alarms.get(clock)?.()
      this.#alarms.delete(clock)
    }
  }

  #expired(clock: RunClock, second: boolean): void {
    const { limits, now } = this.#host
    if (clock === "idle") {
      // A node that waits for the run's own reader is not idle.
      if (this.#attempt?.holdsBack === true) this.#lastEventAt = now()
      const left = limits.idleMs - (now() - this.#lastEventAt)
      if (left > 0) {
        this.#arm("idle", left)
        return
      }
    }
    if (!second) {
      this.#arm(clock, SECOND_LOOK_MS, true)
      return
    }
    const since = { idle: this.#lastEventAt, grace: this.#linkLostAt, queue: this.#queuedAt } as const
    const start =
      clock === "idle" || clock === "grace" || clock === "queue"
        ? since[clock]
        : clock === "first_event"
          ? (this.#attempt?.dispatchedAt ?? this.#submittedAt)
          : this.#submittedAt
    const measuredMs = now() - start
    this.#feed({ type: "clock", clock, measuredMs, detail: this.#clockDetail(clock, measuredMs) })
    this.relay.wake()
  }

  #clockDetail(clock: RunClock, measuredMs: number): string {
    const { limits } = this.#host
    const measured = `${(measuredMs / 1000).toFixed(1)} s`
    const limit = (ms: number) => `(limit ${ms / 1000} s)`
    switch (clock) {
      case "queue":
        return `no slot was free for ${measured} ${limit(limits.queueMs)}; ${this.selection()
          .filter((verdict) => verdict.reason !== "no_adapter" && verdict.reason !== "no_target")
          .map((verdict) => `${verdict.alias}: ${verdict.message}`)
          .join("; ")}`
      case "first_event":
        return `the node sent no event for ${measured} ${limit(limits.firstEventMs)}`
      case "idle":
        return `the node sent nothing for ${measured} between two events ${limit(limits.idleMs)}`
      case "total":
        return `the run took ${measured} ${limit(this.spec.timeoutMs ?? limits.totalMs ?? 0)}`
      case "grace":
        return `${this.#detail}; it did not come back within ${measured} ${limit(limits.resumeGraceMs)}`
      case "cancel":
        return `the node did not answer the cancel for ${measured} ${limit(limits.cancelMs)}`
    }
  }
}

/** Whether a consumer would learn nothing from it. Events of kinds that this version does not know come as such. */
const isEmpty = (event: RunEvent | NodeRunEvent): boolean =>
  event.type === "delta" && "text" in event && event.text === "" && !("logprobs" in event)

const terminalEvent = (outcome: RunOutcome, input: MachineInput): RunEvent => {
  switch (outcome.type) {
    case "completed":
      return input.type === "event" && input.event.type === "completed"
        ? input.event
        : { type: "completed", finishReason: outcome.finishReason }
    case "failed":
      return { type: "failed", ...outcome.failure }
    case "cancelled":
      return { type: "cancelled", reason: outcome.reason }
  }
}

const round = (ms: number): number => Math.round(ms * 10) / 10
