// What is remembered of a run for people: when it came, how long it waited, which nodes had it and how that ended.
import type { TokenUsage } from "@iop/platform-common/protocol/RunEvent"
import type { Attempt } from "./Attempt.ts"
import type { AttemptOutcome } from "./RunObserver.ts"
import type { AttemptRecord, RunSnapshot } from "./RunSpec.ts"

export class RunTimeline {
  readonly #now: () => number
  readonly #submittedAt: number
  readonly #submittedDate = new Date()
  readonly #attempts: Array<AttemptRecord> = []
  #queueMs: number | undefined
  #firstEventMs: number | undefined
  #endedAt: number | undefined
  /** Tokens as the node last told them. */
  usage: TokenUsage | undefined

  /** @param now monotonic milliseconds */
  constructor(now: () => number) {
    this.#now = now
    this.#submittedAt = now()
  }

  /** Milliseconds since the submission. */
  get elapsedMs(): number {
    return (this.#endedAt ?? this.#now()) - this.#submittedAt
  }

  /** Milliseconds from submission to the first dispatch; 0 before it. */
  get queueMs(): number {
    return this.#queueMs ?? 0
  }

  /** Alias of the last node whose attempt is over. */
  get lastNode(): string | undefined {
    return this.#attempts[this.#attempts.length - 1]?.node
  }

  dispatched(): void {
    this.#queueMs ??= this.elapsedMs
  }

  firstEvent(): void {
    this.#firstEventMs ??= this.elapsedMs
  }

  /** The run begins again elsewhere: what the first attempt said is forgotten. */
  requeued(): void {
    this.#firstEventMs = undefined
    this.usage = undefined
  }

  attemptEnded(attempt: Attempt, outcome: AttemptOutcome): void {
    this.#attempts.push({
      attempt: attempt.number,
      node: attempt.claim.entry.record.alias,
      durationMs: round(this.#now() - attempt.dispatchedAt),
      outcome
    })
  }

  ended(): void {
    this.#endedAt = this.#now()
  }

  /** The part of a snapshot that is about time; `current` is the attempt that goes on. */
  snapshot(
    current: Attempt | undefined
  ): Pick<RunSnapshot, "attempts" | "submittedAt" | "queueMs" | "firstEventMs" | "totalMs"> {
    const running = current && { attempt: current.number, node: current.claim.entry.record.alias }
    return {
      attempts: running === undefined ? [...this.#attempts] : [...this.#attempts, running],
      submittedAt: this.#submittedDate.toISOString(),
      ...(this.#queueMs === undefined ? {} : { queueMs: round(this.#queueMs) }),
      ...(this.#firstEventMs === undefined ? {} : { firstEventMs: round(this.#firstEventMs) }),
      totalMs: round(this.elapsedMs)
    }
  }
}

const round = (ms: number): number => Math.round(ms * 10) / 10
