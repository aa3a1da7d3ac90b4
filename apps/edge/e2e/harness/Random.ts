// Randomness from a seed, so that a failing case can be seen again.

/** A small generator (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  pick<Item>(items: ReadonlyArray<Item>): Item {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new RangeError("there is nothing to pick from")
    return item
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length)
    for (let i = 0; i < length; i++) bytes[i] = this.below(256)
    return bytes
  }
}
