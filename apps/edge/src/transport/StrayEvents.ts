// Judges events whose handle is not in use on the link they came by. All are dropped. Three kinds:
//   ended    a run that was over on this link: an event after the terminal one, or one that crossed its end;
//   forged   a run that is in use on another link at this moment: no node can come to such a handle by itself;
//   unknown  anything else, such as a handle of an earlier link or one that was never given.
// A hundred strays of any kind within ten seconds end the link; ten forged ones do.
import type { StrayKind } from "./TransportMetrics.ts"

const WINDOW_MS = 10_000
const MAX_STRAYS = 100
const MAX_FORGED = 10

/** Ended handles of a link that are remembered; older ones count as unknown, which ends no link sooner. */
const REMEMBERED = 4096

export class StrayEvents {
  /** In the order of their end. */
  readonly #ended = new Set<number>()
  /** When the last hundred came; the oldest is overwritten by the next. */
  readonly #times: Array<number> = []
  #next = 0
  #forged = 0

  /** The handle's run is over on this link. */
  ended(handle: number): void {
    this.#ended.add(handle)
    if (this.#ended.size > REMEMBERED) {
      for (const oldest of this.#ended) {
        this.#ended.delete(oldest)
        break
      }
    }
  }

  /** @param usedElsewhere whether the handle is in use on another link */
  kind(handle: number, usedElsewhere: boolean): StrayKind {
    if (usedElsewhere) return "forged"
    return this.#ended.has(handle) ? "ended" : "unknown"
  }

  /** Counts one at `now` (monotonic ms). Returns why the link has to end, when it has to. */
  count(kind: StrayKind, now: number): string | undefined {
    this.#times[this.#next] = now
    this.#next = (this.#next + 1) % MAX_STRAYS
    const oldest = this.#times[this.#next]
    if (kind === "forged") {
      // Not windowed: ten events for the runs of others are not an accident however long they take.
      this.#forged += 1
      if (this.#forged >= MAX_FORGED) return `${this.#forged} events for runs of other nodes`
    }
    return oldest !== undefined && now - oldest < WINDOW_MS
      ? `${MAX_STRAYS} events for runs that it does not have, within ${WINDOW_MS / 1000} s`
      : undefined
  }
}
