// Memory for the events of all runs that go on. Each relay is bounded by itself; this bounds their sum, so that many
// readers who stop at once slow their runs earlier instead of ending the process.
import type { RelayLimits } from "./Relay.ts"

/** Below this much a run could not even hold what a turn brings. */
const MIN_LOG_BYTES = 32 * 1024

/** Logs may use this part of the heap; windows, everything else and the collector need the rest. */
const LOG_PART = 1 / 4

/** Inputs of runs that go on may take this part: a run keeps its input until it ends, to be given to another node. */
const INPUT_PART = 1 / 4

/** Logs and windows together may use this part, when every reader stops and every window is full. */
const WORST_PART = 5 / 8

export class RelayBudget {
  readonly #bytes: number
  readonly #running: () => number
  /** Runs at once: more would not fit even if each held only its least log and its window. */
  readonly maxRuns: number
  /** Bytes that the inputs of all runs may take. */
  readonly maxInputBytes: number
  /** The limits of one run's relay at this moment. */
  readonly limits: RelayLimits

  /**
   * @param heapBytes what the heap may grow to
   * @param running runs that go on
   */
  constructor(heapBytes: number, limits: RelayLimits, runWindowBytes: number, running: () => number) {
    this.#bytes = heapBytes * LOG_PART
    this.#running = running
    this.maxInputBytes = heapBytes * INPUT_PART
    this.maxRuns = Math.max(1, Math.floor((heapBytes * WORST_PART) / (MIN_LOG_BYTES + runWindowBytes)))
    const share = () => this.#share(limits.logBytes)
    this.limits = {
      get logBytes() {
        return share()
      },
      consumerMs: limits.consumerMs
    }
  }

  get full(): boolean {
    return this.#running() >= this.maxRuns
  }

  #share(most: number): number {
    const even = this.#bytes / Math.max(1, this.#running())
    return Math.min(most, Math.max(even, Math.min(most, MIN_LOG_BYTES)))
  }
}
