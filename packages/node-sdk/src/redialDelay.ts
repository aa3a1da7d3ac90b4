// When to dial again. Full jitter spreads a thousand nodes whose edge restarted evenly over the backoff, instead
// of bringing them back in waves.

/** The backoff's first ceiling, in milliseconds. */
export const FIRST_REDIAL_MS = 1_000
/** The backoff's last ceiling, in milliseconds. */
export const MAX_REDIAL_MS = 30_000
/** After a rejection that retrying cannot help, a node asks again this slowly, in case a person repairs the cause. */
export const SLOW_RETRY_MS = { from: 30_000, to: 60_000 } as const

/** What is known when a node has to wait. */
export interface RedialSituation {
  /** Failures in a row before this one, from 0. */
  readonly failures: number
  /** Whether the edge said that retrying cannot help. */
  readonly permanent: boolean
  /** The edge's earliest sensible retry in milliseconds; 0: it named none. */
  readonly retryAfterMs: number
  /** Between 0 and 1, drawn anew each time. */
  readonly random: number
}

/** Milliseconds until the next dial. */
export const redialDelay = ({ failures, permanent, random, retryAfterMs }: RedialSituation): number => {
  const [from, to] = permanent
    ? [SLOW_RETRY_MS.from, SLOW_RETRY_MS.to]
    : [0, Math.min(MAX_REDIAL_MS, FIRST_REDIAL_MS * 2 ** Math.min(failures, 10))]
  // The edge's advice is a floor; the jitter goes on top, since it gave the same advice to others.
  return Math.max(from, retryAfterMs) + random * (to - from)
}
