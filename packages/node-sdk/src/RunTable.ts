// The runs that this process works on or holds for the edge. A run lives here from its RunRequest until the edge
// has acknowledged its terminal event, over as many links as that takes.

import type { HeldRun, HeldRunDecision } from "@iop/platform-common/gen/iop/v1/register_pb"
import type { RunRequest } from "@iop/platform-common/gen/iop/v1/run_pb"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { encodeRunEventFrame } from "@iop/platform-common/protocol/runEventWire"
import { Effect, Fiber } from "effect"
import type { AdapterRun } from "./Adapter.ts"
import type { ConfiguredAdapter } from "./AdapterSet.ts"
import { executeRun, type RunStop } from "./executeRun.ts"
import { RunOutbox } from "./RunOutbox.ts"

/** A link, as far as runs need it. */
export interface RunLink {
  readonly send: (frame: Uint8Array) => void
  /** Unacknowledged bytes that one run may have. */
  readonly runWindowBytes: number
  /** The largest frame that the edge takes, in bytes. */
  readonly maxNodeFrameBytes: number
}

/** Runs that fit into the RegisterRequest of a node, which is limited to 64 KiB. */
export const MAX_HELD_RUNS = 1_000

/** What a held run needs to be named in a RegisterRequest. */
export type HeldRunClaim = Omit<HeldRun, "$typeName" | "$unknown">

interface TableRun {
  readonly runId: string
  readonly attempt: number
  readonly outbox: RunOutbox
  /** Absent if the run was refused. */
  readonly adapter: ConfiguredAdapter | undefined
  executing: boolean
  fiber: Fiber.Fiber<void> | undefined
  stop: RunStop | undefined
  /** The edge does not want its events any more. */
  forgotten: boolean
}

/** See the file's head. */
export class RunTable {
  readonly #fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #onIdle: () => void
  readonly #runs = new Set<TableRun>()
  readonly #byHandle = new Map<number, TableRun>()
  #link: RunLink | undefined

  /** `fork` runs an effect in the background; `onIdle` is called whenever the last run has left. */
  constructor(options: {
    readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
    readonly onIdle: () => void
  }) {
    this.#fork = options.fork
    this.#onIdle = options.onIdle
  }

  /** Runs that are executed or held. */
  get size(): number {
    return this.#runs.size
  }

  /** Runs that are executed now. */
  get executing(): number {
    let count = 0
    for (const run of this.#runs) if (run.executing) count++
    return count
  }

  /** What to claim in the next RegisterRequest. */
  get held(): ReadonlyArray<HeldRunClaim> {
    const claims: Array<HeldRunClaim> = []
    for (const run of this.#runs) {
      if (run.forgotten) continue
      claims.push({
        runId: run.runId,
        attempt: run.attempt,
        firstUnackedSeq: run.outbox.firstUnackedSeq,
        lastSeq: run.outbox.lastSeq
      })
    }
    return claims.slice(0, MAX_HELD_RUNS)
  }

  /** Starts a run on an adapter. The adapter's slot is taken until its execution is over, acknowledged or not. */
  start(request: RunRequest, adapter: ConfiguredAdapter, input: AdapterRun["input"]): void {
    const { instance } = adapter
    if (instance === undefined) {
      this.refuse(request, `adapter ${adapter.config.name} is not running`)
      return
    }
    const run = this.#enter(request, adapter)
    const effect = executeRun({
      instance,
      run: {
        runId: request.runId,
        attempt: request.attempt,
        target: request.target,
        input,
        stream: request.stream,
        session: request.session || undefined,
        deadlineMs: request.deadlineMs || undefined,
        traceparent: request.traceparent || undefined
      },
      outbox: run.outbox,
      maxFrameBytes: () => this.#maxFrameBytes,
      stop: () => run.stop
    })
    run.executing = true
    adapter.slotsInUse++
    run.fiber = this.#fork(
      effect.pipe(
        Effect.ensuring(
          Effect.sync(() => {
            run.executing = false
            adapter.slotsInUse--
            this.#leaveIfOver(run)
          })
        )
      )
    )
  }

  /** Why a request cannot be for a new run: its handle or its run and attempt are taken (R-RUN-10). */
  conflictOf({ attempt, handle, runId }: RunRequest): string | undefined {
    if (handle === 0) return "a run was given handle 0"
    if (this.#byHandle.has(handle)) return `handle ${handle} was used twice`
    for (const run of this.#runs) {
      if (run.runId === runId && run.attempt === attempt && !run.forgotten) {
        return `attempt ${attempt} of run ${runId} was given twice`
      }
    }
    return undefined
  }

  /** Answers a run that this node does not take. */
  refuse(request: RunRequest, message: string, code: "rejected" | "invalid_input" = "rejected"): void {
    const run = this.#enter(request, undefined)
    run.outbox.offer({ type: "failed", code, message, retryable: code === "rejected" })
  }

  /** The edge has taken the events of a run up to `seq`. False if it can't have: no such event was sent. */
  ack(handle: number, seq: number): boolean {
    const run = this.#byHandle.get(handle)
    // A run that has left the table was acknowledged or cancelled; late acks for it are no mistake.
    if (run === undefined) return true
    const possible = run.outbox.ack(seq)
    this.#leaveIfOver(run)
    return possible
  }

  /** Stops a run; it answers with a terminal event once its adapter has let go. */
  cancel(handle: number, reason: string): void {
    const run = this.#byHandle.get(handle)
    if (run !== undefined) this.#stop(run, { type: "cancelled", reason })
  }

  /** Stops the runs of an adapter that is being stopped. */
  stopAdapter(adapter: ConfiguredAdapter): void {
    for (const run of this.#runs) {
      if (run.adapter === adapter) {
        this.#stop(run, {
          type: "failed",
          code: "internal",
          message: `adapter ${adapter.config.name} was stopped or reconfigured while the run was on it`,
          retryable: true
        })
      }
    }
  }

  /** Stops all runs; another node may take those that have delivered nothing. */
  stopAll(message: string): void {
    for (const run of [...this.#runs]) {
      this.#stop(run, { type: "failed", code: "internal", message, retryable: true })
    }
  }

  /** Stops all runs and forgets them: nobody will ask for their events. */
  forgetAll(reason: string): void {
    for (const run of [...this.#runs]) this.#forget(run, reason)
  }

  /** The link is gone; runs go on until their windows are full. */
  detach(): void {
    this.#link = undefined
    this.#byHandle.clear()
    for (const run of [...this.#runs]) run.outbox.detach()
  }

  /**
   * Goes on with a new link. A run that the edge has no decision for, or whose resumption does not fit, is stopped
   * and forgotten. Returns how many were resumed and why others were not.
   */
  attach(
    link: RunLink,
    decisions: ReadonlyArray<HeldRunDecision>
  ): { readonly resumed: number; readonly dropped: ReadonlyArray<string> } {
    this.#link = link
    this.#byHandle.clear()
    const decisionOf = new Map(decisions.map((decision) => [keyOf(decision), decision.decision]))
    const dropped: Array<string> = []
    let resumed = 0
    for (const run of [...this.#runs]) {
      if (run.forgotten) continue
      const decision = decisionOf.get(keyOf(run))
      if (decision?.case === "resume") {
        const { afterSeq, handle } = decision.value
        // Before the resumption: it sends, and the edge may acknowledge within the same turn.
        this.#byHandle.set(handle, run)
        if (run.outbox.resume({ afterSeq, handle, window: link.runWindowBytes, send: link.send })) {
          resumed++
          this.#leaveIfOver(run)
          continue
        }
        this.#byHandle.delete(handle)
        dropped.push(
          `${run.runId}: the edge wants to go on after event ${afterSeq}, this node holds ${run.outbox.firstUnackedSeq} to ${run.outbox.lastSeq}`
        )
      } else {
        const reason = decision?.case === "cancel" ? decision.value.reason : "the edge does not know the run"
        dropped.push(`${run.runId}: ${reason}`)
      }
      this.#forget(run, "the edge does not want the run any more")
    }
    return { resumed, dropped }
  }

  get #maxFrameBytes(): number {
    return this.#link?.maxNodeFrameBytes ?? DETACHED_MAX_FRAME_BYTES
  }

  #enter(request: RunRequest, adapter: ConfiguredAdapter | undefined): TableRun {
    const link = this.#link
    if (link === undefined) throw new Error("a run was started without a link")
    const run: TableRun = {
      runId: request.runId,
      attempt: request.attempt,
      outbox: new RunOutbox({
        encode: (handle, seq, event) => this.#encode(handle, seq, event),
        handle: request.handle,
        window: link.runWindowBytes,
        send: link.send
      }),
      adapter,
      executing: false,
      fiber: undefined,
      stop: undefined,
      forgotten: false
    }
    this.#runs.add(run)
    this.#byHandle.set(request.handle, run)
    return run
  }

  #encode(handle: number, seq: number, event: NodeRunEvent): Uint8Array {
    const frame = encodeRunEventFrame(handle, seq, event)
    if (frame.length > this.#maxFrameBytes) {
      throw new RangeError(
        `it takes ${frame.length} bytes, and the edge takes frames of at most ${this.#maxFrameBytes}`
      )
    }
    return frame
  }

  #stop(run: TableRun, stop: RunStop): void {
    if (!run.executing || run.stop !== undefined) return
    run.stop = stop
    // Not awaited: an adapter that does not let go keeps its slot, and nothing else waits for it.
    if (run.fiber !== undefined) this.#fork(Fiber.interrupt(run.fiber))
  }

  #forget(run: TableRun, reason: string): void {
    run.forgotten = true
    run.outbox.detach()
    this.#stop(run, { type: "cancelled", reason })
    this.#leaveIfOver(run)
  }

  #leaveIfOver(run: TableRun): void {
    if (run.executing || !(run.forgotten || run.outbox.settled)) return
    if (!this.#runs.delete(run)) return
    if (this.#byHandle.get(run.outbox.handle) === run) this.#byHandle.delete(run.outbox.handle)
    if (this.#runs.size === 0) this.#onIdle()
  }
}

/** The limit that was in force on the last link may be gone; this is the protocol's default. */
const DETACHED_MAX_FRAME_BYTES = 1024 * 1024

const keyOf = (run: { readonly runId: string; readonly attempt: number }) => `${run.attempt}/${run.runId}`
