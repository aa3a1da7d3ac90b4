// Counts wrong tokens per address, so that a guesser or a flood gets no answers. It never stands between a good
// token and its node: the caller checks the token first and asks here only when it was wrong.

const WINDOW_MS = 60_000

/** Addresses that are remembered; the one that failed longest ago is forgotten first. */
const MAX_ADDRESSES = 4096

interface Failures {
  since: number
  count: number
}

export class TokenThrottle {
  readonly #perMinute: number
  readonly #maxAddresses: number
  /** In the order of the last failure. */
  readonly #byAddress = new Map<string, Failures>()

  /** @param perMinute wrong tokens from one address that are answered in a minute */
  constructor(perMinute: number, maxAddresses = MAX_ADDRESSES) {
    this.#perMinute = perMinute
    this.#maxAddresses = maxAddresses
  }

  /** Addresses that are remembered now. */
  get size(): number {
    return this.#byAddress.size
  }

  /** A wrong token came from the address at `now` (monotonic ms). "first" is the first one over the limit. */
  failed(address: string, now: number): "answer" | "first_throttled" | "throttled" {
    let failures = this.#byAddress.get(address)
    if (failures === undefined || now - failures.since >= WINDOW_MS) failures = { since: now, count: 0 }
    failures.count += 1
    this.#byAddress.delete(address)
    this.#byAddress.set(address, failures)
    if (this.#byAddress.size > this.#maxAddresses) {
      for (const oldest of this.#byAddress.keys()) {
        this.#byAddress.delete(oldest)
        break
      }
    }
    if (failures.count <= this.#perMinute) return "answer"
    return failures.count === this.#perMinute + 1 ? "first_throttled" : "throttled"
  }
}
