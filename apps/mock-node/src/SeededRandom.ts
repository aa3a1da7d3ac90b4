// Randomness that is the same in every run of every process: what a script does depends on its seed alone.

/** The generator mulberry32: small, fast, good enough to cut texts. */
export class SeededRandom {
  #state: number

  /** Any text is a seed; equal texts give equal sequences. */
  constructor(seed: string) {
    this.#state = hashOf(seed)
  }

  /** The next number, from 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** The next whole number, from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1))
  }

  /** One of the items. Throws for an empty list. */
  pick<Item>(items: ReadonlyArray<Item>): Item {
    const item = items[this.between(0, items.length - 1)]
    if (item === undefined) throw new RangeError("there is nothing to pick from")
    return item
  }
}

/** FNV-1a over UTF-16 code units, as an unsigned 32-bit number. */
export const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}
