// The circuit of one adapter on one node. A node that fails every run within milliseconds looks idle and would win
// every selection; the circuit takes it out of the running, tries it again with single runs and lets it back in.

/** When a circuit opens and for how long. Times in milliseconds on the monotonic clock. */
export interface CircuitLimits {
  /** Fast failures within `windowMs` that open the circuit. */
  readonly failures: number
  readonly windowMs: number
  /** How long it stays open before a single run is let through; doubles with each failed probe, to 16 times. */
  readonly openForMs: number
}

export type CircuitState =
  | { readonly state: "closed" }
  /** No run until `retryInMs` from now. */
  | { readonly state: "open"; readonly retryInMs: number; readonly reason: string }
  /** One run may try. */
  | { readonly state: "half_open"; readonly reason: string }
  /** That run is under way. */
  | { readonly state: "probing"; readonly reason: string }

const closed: CircuitState = { state: "closed" }
/** A backend that is down for long is asked at most once in openForMs * 16 (160 s by default). */
const MAX_BACKOFF = 16

export class Circuit {
  readonly #limits: CircuitLimits
  #failedAt: Array<number> = []
  #openUntil: number | undefined
  #backoff = 1
  #probing = false
  #reason = ""

  constructor(limits: CircuitLimits) {
    this.#limits = limits
  }

  /** The state at `now`. */
  at(now: number): CircuitState {
    if (this.#openUntil === undefined) return closed
    if (this.#probing) return { state: "probing", reason: this.#reason }
    if (now < this.#openUntil) {
      return { state: "open", retryInMs: Math.ceil(this.#openUntil - now), reason: this.#reason }
    }
    return { state: "half_open", reason: this.#reason }
  }

  /** A run was given to the adapter. Returns whether it is the probe of a half-open circuit. */
  dispatched(now: number): boolean {
    if (this.at(now).state !== "half_open") return false
    this.#probing = true
    return true
  }

  /** A run got past its beginning, or ended well: the adapter works. */
  succeeded(): void {
    this.#failedAt = []
    this.#openUntil = undefined
    this.#backoff = 1
    this.#probing = false
  }

  /**
   * A run failed fast. Returns for how long the circuit is open from now on when this failure opened it (in
   * milliseconds), else undefined.
   */
  failedFast(now: number, probe: boolean, reason: string): number | undefined {
    this.#reason = reason
    if (probe) {
      this.#probing = false
      this.#backoff = Math.min(this.#backoff * 2, MAX_BACKOFF)
      return this.#open(now)
    }
    if (this.#openUntil !== undefined) return undefined
    this.#failedAt = this.#failedAt.filter((at) => now - at < this.#limits.windowMs)
    this.#failedAt.push(now)
    return this.#failedAt.length >= this.#limits.failures ? this.#open(now) : undefined
  }

  /** The probe ended without an answer about the adapter (cancelled, link lost): another one may be sent. */
  probeEndedOpen(): void {
    this.#probing = false
  }

  #open(now: number): number {
    const openFor = this.#limits.openForMs * this.#backoff
    this.#failedAt = []
    this.#openUntil = now + openFor
    return openFor
  }
}
