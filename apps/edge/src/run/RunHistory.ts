// The runs that the edge remembers: all that go on, and the newest that ended. Their events are kept as long as
// there is room, so that a later reader gets the rest of a detached run or is told that it comes too late.
import type { Run } from "./Run.ts"

/** Room for the events of runs that have ended, in bytes: about a day of chats for a small team. */
export const ENDED_LOG_BYTES = 32 * 1024 * 1024

/** Old runs looked at when one ends: more than one, so that what was put back because somebody read it is caught up. */
const LOOKED_AT = 4

export class RunHistory {
  readonly #limit: number
  readonly #runs = new Map<string, Run>()
  /** Ended runs, oldest first. */
  readonly #ended = new Fifo<Run>()
  /** Those of them that still have their events. */
  readonly #withLog = new Fifo<Run>()
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
    this.#ended.push(run)
    this.#withLog.push(run)
    this.#logBytes += run.relay.bytes
    // A run that somebody still reads keeps its place in the room, and its turn comes again.
    for (
      let looked = Math.min(this.#withLog.size, LOOKED_AT);
      looked > 0 && this.#logBytes > ENDED_LOG_BYTES;
      looked--
    ) {
      const old = this.#withLog.shift()
      if (old === undefined) break
      if (old.relay.readers > 0) this.#withLog.push(old)
      else this.#dropLog(old)
    }
    for (
      let looked = Math.min(this.#ended.size, LOOKED_AT);
      looked > 0 && this.#ended.size > this.#limit;
      looked--
    ) {
      const old = this.#ended.shift()
      if (old === undefined) break
      if (old.relay.readers > 0) this.#ended.push(old)
      else {
        this.#dropLog(old)
        this.#runs.delete(old.id)
      }
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
    this.#logBytes -= run.relay.bytes
    run.relay.drop()
  }
}

/** A queue whose ends cost nothing; a Set would walk over what was deleted from its front. */
class Fifo<A> {
  #items: Array<A> = []
  #head = 0

  get size(): number {
    return this.#items.length - this.#head
  }

  push(item: A): void {
    this.#items.push(item)
  }

  shift(): A | undefined {
    const item = this.#items[this.#head]
    if (item === undefined) return undefined
    this.#head += 1
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }
}
