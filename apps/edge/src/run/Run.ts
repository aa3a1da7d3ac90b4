// One accepted run: it feeds the state machine, carries out its actions, and owns the run's clocks and relay.
import type { RunInput } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import { isTerminal, type NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import type { NodeEntry, SlotClaim } from "../node/NodeEntry.ts"
import type { NodeLink } from "../node/NodeLink.ts"
import { Attempt, type AttemptOwner } from "./Attempt.ts"
import { clockMessage } from "./clockMessage.ts"
import { Relay, type RelayReader } from "./Relay.ts"
import { RunClocks } from "./RunClocks.ts"
import type { RunEvent } from "./RunEvent.ts"
import type { RunFailure } from "./RunFailure.ts"
import type { RunHost } from "./RunHost.ts"
import type { AttemptOutcome } from "./RunObserver.ts"
import type { NodeVerdict, RunSnapshot, RunSpec } from "./RunSpec.ts"
import { RunTimeline } from "./RunTimeline.ts"
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
import { isEmpty, terminalEvent } from "./runOutcomeEvent.ts"

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
  /** How the last selection judged each node. */
  selection: () => ReadonlyArray<NodeVerdict> = () => noVerdicts
  /** About what the input takes in memory, while the run has it. */
  inputBytes = 0
  /** The reader of whoever submitted the run. */
  owner: RelayReader | undefined
  readonly #host: RunHost
  #input: RunInput | undefined
  #state: RunState = initialState
  #attempt: Attempt | undefined
  /** An attempt that the run no longer waits for but whose node has not answered. */
  #orphan: Attempt | undefined
  #attemptCount = 0
  #held: Array<{ readonly event: NodeRunEvent; readonly bytes: number }> = []
  readonly #timeline: RunTimeline
  readonly #clocks: RunClocks
  #queuedAt: number
  #linkReason = ""

  constructor(id: string, { input, ...spec }: RunSpec, host: RunHost, span?: RunSpan) {
    this.id = id
    this.spec = spec
    this.span = span
    this.#input = input
    this.adapter = spec.adapter
    this.target = spec.target
    this.signatureBase = `${spec.target}\u0000${JSON.stringify(spec.labels ?? {})}`
    this.#host = host
    this.#timeline = new RunTimeline(host.now)
    this.#queuedAt = host.now()
    this.#clocks = new RunClocks({
      now: host.now,
      after: host.after,
      excused: () => this.#attempt?.holdsBack === true,
      expired: (clock, measuredMs) => this.#clockExpired(clock, measuredMs)
    })
    this.relay = new Relay(host.limits.relay, {
      now: host.now,
      after: host.after,
      ownerRead: () => this.#attempt?.acknowledge(),
      left: (reader) => this.#readerLeft(reader),
      slow: (reader, failure) => this.#readerSlow(reader, failure)
    })
    if (this.totalMs !== undefined) this.#clocks.start("total", this.totalMs)
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
    return this.#timeline.queueMs
  }

  get runWindowBytes(): number {
    return this.#host.limits.runWindowBytes
  }

  /** The run's total time in milliseconds; undefined: no limit. */
  get totalMs(): number | undefined {
    return this.spec.timeoutMs ?? this.#host.limits.totalMs
  }

  /** What is left of the total time, in milliseconds; 0: no limit. */
  get deadlineMs(): number {
    return this.totalMs === undefined ? 0 : Math.max(1, Math.ceil(this.totalMs - this.#timeline.elapsedMs))
  }

  /** The run could not be dispatched at once: it waits. */
  wait(): void {
    this.#host.enqueue(this, false)
    this.#append({ type: "queued", ahead: this.#host.queuedAhead(this) })
    this.#clocks.start("queue", this.#host.limits.queueMs)
  }

  /** A slot was claimed: the run is sent to its node. */
  dispatch(claim: SlotClaim, link: NodeLink): void {
    const input = this.#input
    if (input === undefined) throw new Error(`run ${this.id} is over and can't be dispatched`)
    const now = this.#host.now()
    this.#clocks.stop("queue")
    this.#attemptCount += 1
    this.#timeline.dispatched()
    const attempt = new Attempt(this.#attemptCount, claim, now, this)
    this.#attempt = attempt
    attempt.link = link
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
    this.#clocks.start("first_event", this.#host.limits.firstEventMs)
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
    this.#linkReason = reason
    this.#feed({ type: "link_lost", reason, mayResume })
    if (!this.#isLost()) return
    const graceMs = this.#host.limits.resumeGraceMs
    this.#clocks.start("grace", graceMs)
    this.#append({ type: "interrupted", node: attempt.claim.entry.record.alias, reason, graceMs })
    this.relay.wake()
  }

  /** Whether the run waits for this node to come back. */
  waitsFor(entry: NodeEntry): boolean {
    return this.#isLost() && this.#attempt?.claim.entry === entry
  }

  /** The node came back and holds the run. */
  resumed(link: NodeLink, handle: number, afterSeq: number): void {
    this.#attempt?.resume(link, handle, afterSeq)
    this.#clocks.stop("grace")
    this.#clocks.heard()
    this.#feed({ type: "resumed" })
    const node = this.#attempt?.claim.entry.record.alias
    if (node !== undefined) this.#append({ type: "resumed", node })
    this.relay.wake()
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
    if (this.#clocks.running("first_event")) {
      this.#timeline.firstEvent()
      this.#clocks.stop("first_event")
      this.#clocks.start("idle", this.#host.limits.idleMs)
    }
    if (event.type === "usage") this.#timeline.usage = event.usage
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
    if (attempt === this.#attempt) this.#clocks.heard()
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
    const lastNode = attempt?.claim.entry.record.alias ?? this.#timeline.lastNode
    const usage =
      outcome?.type === "completed" ? (outcome.usage ?? this.#timeline.usage) : this.#timeline.usage
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
      ...this.#timeline.snapshot(this.#attempt),
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
        // A node that has just gone may come back as well as another that has.
        (input.type === "not_resumed" ||
          this.#host.hasAlternative(this, node?.id ?? "", input.type === "link_lost" && input.mayResume))
    })
    const before = this.#state
    this.#state = state
    if (before.phase !== state.phase) this.#phaseChanged(state, input)
    for (const action of actions) this.#perform(action, bytes, input)
  }

  #phaseChanged(state: RunState, input: MachineInput): void {
    if (state.phase === "cancelling") {
      this.#clocks.stop("first_event", "idle", "grace")
      this.#clocks.start("cancel", this.#host.limits.cancelMs)
      this.#attempt?.acknowledge()
    }
    if (state.phase === "streaming" && this.#attempt !== undefined) {
      this.#attempt.delivered = true
      this.#host.delivering(this.#attempt)
    }
    if (state.phase === "queued") this.#clocks.stop("first_event", "idle", "grace", "cancel")
    if (state.phase === "final") {
      this.#timeline.ended()
      this.#input = undefined
      this.#clocks.stopAll()
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
        this.#timeline.requeued()
        this.#queuedAt = this.#host.now()
        this.#host.enqueue(this, true)
        this.#clocks.start("queue", this.#host.limits.queueMs)
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
    this.#timeline.attemptEnded(attempt, outcome)
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
    this.#timeline.attemptEnded(attempt, outcome)
    attempt.orphaned = true
    attempt.acknowledge()
    this.#orphan = attempt
    this.#host.orphaned(this, true)
    this.#host.attemptEnded(this, attempt, outcome, "")
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

  #clockExpired(clock: RunClock, measuredMs: number): void {
    const passing = clock !== "queue" || this.#host.reconsider(this)
    const detail = clockMessage(clock, measuredMs, {
      limits: this.#host.limits,
      totalMs: this.totalMs,
      linkReason: this.#linkReason,
      selection: this.selection,
      passing
    })
    this.#feed({
      type: "clock",
      clock,
      measuredMs,
      detail,
      ...(passing ? {} : { code: "no_node_available" })
    })
    this.relay.wake()
  }
}
