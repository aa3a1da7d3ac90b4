// Gives runs their handles. One counter serves all links of the edge, so that a handle that comes back on the wrong
// link is known to be somebody else's, and not merely unknown.

const MAX_HANDLE = 0xffff_ffff

export class Handles<Link> {
  readonly #owners = new Map<number, Link>()
  #last = 0

  /** Handles in use on all links. */
  get size(): number {
    return this.#owners.size
  }

  /** A new handle for a run on the link: an unsigned 32-bit integer, never 0, not in use on any link. */
  next(link: Link): number {
    do {
      this.#last = this.#last === MAX_HANDLE ? 1 : this.#last + 1
    } while (this.#owners.has(this.#last))
    this.#owners.set(this.#last, link)
    return this.#last
  }

  /** The link on which the handle is in use. */
  owner(handle: number): Link | undefined {
    return this.#owners.get(handle)
  }

  release(handle: number): void {
    this.#owners.delete(handle)
  }
}
