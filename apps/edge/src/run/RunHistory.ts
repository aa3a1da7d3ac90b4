// The runs that the edge remembers: all that go on, and the newest that ended. Their events are kept as long as
// there is room, so that a later reader gets the rest of a detached run or is told that it comes too late.
import type { Run } from "./Run.ts"

/** Room for the events of runs that have ended, in bytes: about a day of chats for a small team. */
export const ENDED_LOG_BYTES = 32 * 1024 * 1024

export class RunHistory {
  readonly #limit: number
  readonly #runs = new Map<string, Run>()
  /** Ended runs, oldest first. */
  readonly #ended = new Set<Run>()
  /** Those of them that still have their events. */
  readonly #withLog = new Set<Run>()
  #logBytes = 0

  /** `limit`: ended runs to remember. */
  constructor(limit: number) {
    this.#limit = limit
  }

  add(run: Run): void {
    this.#runs.set(run.id, run)
  }

  get(id: string): Run | undefined {
    return this.#runs.get(id)
  }

  ended(run: Run): void {
    this.#ended.add(run)
    this.#withLog.add(run)
    this.#logBytes += run.relay.bytes
    for (const old of this.#withLog) {
      if (this.#logBytes <= ENDED_LOG_BYTES) break
      if (old.relay.readers > 0) continue
      this.#dropLog(old)
    }
    for (const old of this.#ended) {
      if (this.#ended.size <= this.#limit) break
      if (old.relay.readers > 0) continue
      this.#ended.delete(old)
      this.#dropLog(old)
      this.#runs.delete(old.id)
    }
  }

  /** Runs that go on. */
  *active(): IterableIterator<Run> {
    for (const run of this.#runs.values()) if (!run.final) yield run
  }

  /** Newest first. */
  list(active: boolean | undefined, limit: number): ReadonlyArray<Run> {
    const found: Array<Run> = []
    const runs = [...this.#runs.values()]
    for (let i = runs.length - 1; i >= 0 && found.length < limit; i--) {
      const run = runs[i]!
      if (active === undefined || run.final !== active) found.push(run)
    }
    return found
  }

  #dropLog(run: Run): void {
    if (!this.#withLog.delete(run)) return
    this.#logBytes -= run.relay.bytes
    run.relay.drop()
  }
}
