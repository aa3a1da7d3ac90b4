// The clocks of one run: which are wound, since when, and what they measured when they ran out. After an alarm the
// sockets get one turn before anybody is blamed: the edge itself may have been paused.
import type { RunClock } from "./runMachine.ts"

const SECOND_LOOK_MS = 1

export interface RunClocksHost {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly after: (ms: number, callback: () => void) => () => void
  /** Whether the silence is the edge's own doing: the node waits for the run's reader. */
  readonly excused: () => boolean
  readonly expired: (clock: RunClock, measuredMs: number) => void
}

interface Alarm {
  readonly since: number
  readonly cancel: () => void
}

export class RunClocks {
  readonly #host: RunClocksHost
  readonly #alarms = new Map<RunClock, Alarm>()
  #heardAt: number

  constructor(host: RunClocksHost) {
    this.#host = host
    this.#heardAt = host.now()
  }

  /** Starts a clock; one that runs is started anew. */
  start(clock: RunClock, ms: number): void {
    const since = this.#host.now()
    if (clock === "idle") this.#heardAt = since
    this.#arm(clock, ms, ms, since, false)
  }

  running(clock: RunClock): boolean {
    return this.#alarms.has(clock)
  }

  stop(...clocks: ReadonlyArray<RunClock>): void {
    for (const clock of clocks) {
      this.#alarms.get(clock)?.cancel()
      this.#alarms.delete(clock)
    }
  }

  stopAll(): void {
    for (const { cancel } of this.#alarms.values()) cancel()
    this.#alarms.clear()
  }

  /** The node said something: the idle clock begins again. Costs nothing, the alarm finds out when it rings. */
  heard(): void {
    this.#heardAt = this.#host.now()
  }

  #arm(clock: RunClock, limitMs: number, ms: number, since: number, second: boolean): void {
    this.stop(clock)
    const cancel = this.#host.after(ms, () => {
      this.#alarms.delete(clock)
      this.#rang(clock, limitMs, since, second)
    })
    this.#alarms.set(clock, { since, cancel })
  }

  #rang(clock: RunClock, limitMs: number, since: number, second: boolean): void {
    const now = this.#host.now()
    if (clock === "idle") {
      if (this.#host.excused()) this.#heardAt = now
      const left = limitMs - (now - this.#heardAt)
      if (left > 0) {
        this.#arm(clock, limitMs, left, since, false)
        return
      }
    }
    if (second) this.#host.expired(clock, now - (clock === "idle" ? this.#heardAt : since))
    else this.#arm(clock, limitMs, SECOND_LOOK_MS, since, true)
  }
}
