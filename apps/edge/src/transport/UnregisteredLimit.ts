// Bounds the connections that have not registered: so many in all, half of them from one address. At the bound the
// oldest one makes room: a node registers within a round trip, so a crowd of silent strangers cannot keep it out,
// which a limit that turns newcomers away would let them do.

export class UnregisteredLimit<Connection> {
  readonly #max: number
  readonly #perAddress: number
  /** All, oldest first. */
  readonly #addressOf = new Map<Connection, string>()
  readonly #byAddress = new Map<string, Set<Connection>>()

  /** @param max connections in all */
  constructor(max: number) {
    this.#max = max
    this.#perAddress = Math.max(1, Math.floor(max / 2))
  }

  /** Connections that are counted now. */
  get size(): number {
    return this.#addressOf.size
  }

  /** Counts the connection. Returns the one that has to go instead, which is no longer counted. */
  enter(connection: Connection, address: string): Connection | undefined {
    const displaced = this.#tooMany(address)
    if (displaced !== undefined) this.leave(displaced)
    this.#addressOf.set(connection, address)
    const same = this.#byAddress.get(address)
    if (same === undefined) this.#byAddress.set(address, new Set([connection]))
    else same.add(connection)
    return displaced
  }

  /** The connection registered or is closed. Leaving twice is leaving once. */
  leave(connection: Connection): void {
    const address = this.#addressOf.get(connection)
    if (address === undefined) return
    this.#addressOf.delete(connection)
    const same = this.#byAddress.get(address)
    same?.delete(connection)
    if (same?.size === 0) this.#byAddress.delete(address)
  }

  #tooMany(address: string): Connection | undefined {
    const same = this.#byAddress.get(address)
    if (same !== undefined && same.size >= this.#perAddress) return first(same)
    if (this.#addressOf.size < this.#max) return undefined
    return first(this.#addressOf.keys())
  }
}

const first = <A>(values: Iterable<A>): A | undefined => {
  for (const value of values) return value
  return undefined
}
