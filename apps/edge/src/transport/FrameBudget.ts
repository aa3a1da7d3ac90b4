// How many frames other than run events a node may send: those have no window that bounds them. A bucket that fills
// again evenly; large frames cost more, because reading them does.

/** Frames a second in the long run. A node sends one Pong and at most some statuses a second. */
const PER_SECOND = 200
/** Frames at once: what piles up while the edge or the path stood still. */
const BURST = 2000
/** Bytes that cost as much as a frame. */
const BYTES_PER_UNIT = 4096

export class FrameBudget {
  #left = BURST
  #at: number

  /** @param now monotonic ms */
  constructor(now: number) {
    this.#at = now
  }

  /** Whether a frame of `bytes` is still within the budget at `now`. */
  spend(bytes: number, now: number): boolean {
    this.#left = Math.min(BURST, this.#left + ((now - this.#at) / 1000) * PER_SECOND)
    this.#at = now
    this.#left -= 1 + bytes / BYTES_PER_UNIT
    return this.#left >= 0
  }
}

/** The budget in words. */
export const frameBudgetText = `more than ${PER_SECOND} status and pong frames a second`
