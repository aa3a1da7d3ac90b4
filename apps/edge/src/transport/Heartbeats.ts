// The pulse of all links: one ticker that pings each link once per interval and ends those that fell silent. Links are
// judged after their sockets had a turn to be read, and get one more interval when the edge itself stood still.
import type { Timers } from "../node/Timers.ts"
import { judgePulse, type LinkPulse, stoodStill } from "./heartbeat.ts"
import type { HeartbeatSettings } from "./LinkSettings.ts"

/** What the ticker needs of a link. */
export interface BeatingLink {
  lastFrameAt: number
  lastPingAt: number
  excusedUntil: number
  readonly ping: () => void
  readonly setSuspect: (suspect: boolean) => void
  readonly dead: (silentMs: number) => void
}

/** Looks per interval: a silent link is found within a fifth of an interval. */
const TICKS_PER_INTERVAL = 5
const MIN_TICK_MS = 10

export class Heartbeats {
  readonly #timers: Timers["Service"]
  readonly #settings: HeartbeatSettings
  readonly #links: () => Iterable<BeatingLink>
  readonly #afterReading: (callback: () => void) => void
  readonly #tickMs: number
  #cancel: (() => void) | undefined
  #stopped = false

  /**
   * @param links the registered links now
   * @param afterReading calls back when every socket that had something was read
   */
  constructor(
    timers: Timers["Service"],
    settings: HeartbeatSettings,
    links: () => Iterable<BeatingLink>,
    afterReading: (callback: () => void) => void = setImmediate
  ) {
    this.#timers = timers
    this.#settings = settings
    this.#links = links
    this.#afterReading = afterReading
    this.#tickMs = Math.max(MIN_TICK_MS, settings.intervalMs / TICKS_PER_INTERVAL)
  }

  start(): void {
    const dueAt = this.#timers.now() + this.#tickMs
    this.#cancel = this.#timers.after(this.#tickMs, () => {
      this.#afterReading(() => {
        if (this.#stopped) return
        this.#tick(stoodStill(dueAt, this.#timers.now(), this.#settings.intervalMs))
        this.start()
      })
    })
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  #tick(late: boolean): void {
    const now = this.#timers.now()
    for (const link of [...this.#links()]) {
      if (late) link.excusedUntil = now + this.#settings.intervalMs
      const verdict = judgePulse(link satisfies LinkPulse, now, this.#settings)
      if (verdict.state === "dead") {
        link.dead(now - link.lastFrameAt)
        continue
      }
      if (verdict.state !== "excused") link.setSuspect(verdict.state === "suspect")
      if (verdict.pingDue) {
        link.lastPingAt = now
        link.ping()
      }
    }
  }
}
