// Runs that wait for a slot: first in, first out per adapter and target, bounded. A run that is given to another node
// goes before the others and is never refused: it was accepted already.

/** What the queue needs to know of a waiting run. */
export interface Waiting {
  readonly adapter: string
  readonly target: string
  /** Runs with the same signature fit the same nodes: when one finds no slot, the others need not ask. */
  readonly signature: string
}

interface Lane<R> {
  readonly again: Set<R>
  readonly waiting: Set<R>
  readonly perTarget: Map<string, number>
}

export class RunQueue<R extends Waiting> {
  readonly #limit: number
  readonly #lanes = new Map<string, Lane<R>>()
  #size = 0

  /** `limit`: waiting runs per adapter and target. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#size
  }

  get adapters(): IterableIterator<string> {
    return this.#lanes.keys()
  }

  /** Runs that wait for the target. */
  count(adapter: string, target: string): number {
    return this.#lanes.get(adapter)?.perTarget.get(target) ?? 0
  }

  isFull(adapter: string, target: string): boolean {
    return this.count(adapter, target) >= this.#limit
  }

  get limit(): number {
    return this.#limit
  }

  /** `again`: before all that have not run yet. */
  add(run: R, again: boolean): void {
    let lane = this.#lanes.get(run.adapter)
    if (lane === undefined) {
      lane = { again: new Set(), waiting: new Set(), perTarget: new Map() }
      this.#lanes.set(run.adapter, lane)
    }
    lane[again ? "again" : "waiting"].add(run)
    lane.perTarget.set(run.target, (lane.perTarget.get(run.target) ?? 0) + 1)
    this.#size += 1
  }

  /** Whether it was there. */
  remove(run: R): boolean {
    const lane = this.#lanes.get(run.adapter)
    if (lane === undefined || !(lane.again.delete(run) || lane.waiting.delete(run))) return false
    const left = (lane.perTarget.get(run.target) ?? 1) - 1
    if (left > 0) lane.perTarget.set(run.target, left)
    else lane.perTarget.delete(run.target)
    if (lane.again.size + lane.waiting.size === 0) this.#lanes.delete(run.adapter)
    this.#size -= 1
    return true
  }

  /** Runs of the same target before this one. */
  ahead(run: R): number {
    const lane = this.#lanes.get(run.adapter)
    if (lane === undefined) return 0
    let before = 0
    for (const other of [...lane.again, ...lane.waiting]) {
      if (other === run) return before
      if (other.target === run.target) before += 1
    }
    return before
  }

  /** Offers the runs of an adapter in their order; `dispatch` returns whether it took the run. */
  offer(adapter: string, dispatch: (run: R) => boolean): void {
    const lane = this.#lanes.get(adapter)
    if (lane === undefined) return
    const blocked = new Set<string>()
    for (const runs of [lane.again, lane.waiting]) {
      for (const run of runs) {
        if (blocked.has(run.signature)) continue
        if (dispatch(run)) this.remove(run)
        else blocked.add(run.signature)
      }
    }
  }

  /** All waiting runs, in their order. */
  all(): ReadonlyArray<R> {
    return [...this.#lanes.values()].flatMap((lane) => [...lane.again, ...lane.waiting])
  }
}
