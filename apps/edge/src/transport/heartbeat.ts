// Judges whether a link lives. A pure function of what was measured, so that every case of it can be tried.
import type { HeartbeatSettings } from "./LinkSettings.ts"

export interface LinkPulse {
  /** When the last complete frame was handled, or the link registered. All times: monotonic ms. */
  readonly lastFrameAt: number
  readonly lastPingAt: number
  /** Until then the link is not judged: this process itself stood still. */
  readonly excusedUntil: number
}

export interface PulseVerdict {
  /** "excused": nothing can be said yet, what was known of the link stays. */
  readonly state: "alive" | "suspect" | "dead" | "excused"
  /** Whole intervals without a complete frame. */
  readonly missed: number
  readonly pingDue: boolean
}

/** Timers fire a little early at times; waiting for the next look would make every interval a fifth longer. */
const PING_EARLY = 0.95

export const judgePulse = (pulse: LinkPulse, now: number, settings: HeartbeatSettings): PulseVerdict => {
  const missed = Math.floor((now - pulse.lastFrameAt) / settings.intervalMs)
  const pingDue = now - pulse.lastPingAt >= settings.intervalMs * PING_EARLY
  if (missed < settings.suspectAfter) return { state: "alive", missed, pingDue }
  if (now < pulse.excusedUntil) return { state: "excused", missed, pingDue }
  return { state: missed >= settings.deadAfter ? "dead" : "suspect", missed, pingDue }
}

/**
 * Whether a timer was so late that this process must have stood still. Below half an interval a pause cannot make a
 * link that answers look as if it missed two.
 */
export const stoodStill = (dueAt: number, now: number, intervalMs: number): boolean =>
  now - dueAt >= intervalMs / 2
