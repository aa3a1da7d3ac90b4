// Which node served a session last, so that the next run of the conversation finds its cache there.

/** More conversations than a small team has open; the one that was quiet for longest is forgotten. */
const MAX_SESSIONS = 10_000

export class SessionAffinity {
  readonly #nodes = new Map<string, string>()

  /** Id of the node that served the session on this adapter and target. */
  get(adapter: string, target: string, session: string): string | undefined {
    return this.#nodes.get(key(adapter, target, session))
  }

  set(adapter: string, target: string, session: string, nodeId: string): void {
    const name = key(adapter, target, session)
    this.#nodes.delete(name)
    this.#nodes.set(name, nodeId)
    if (this.#nodes.size <= MAX_SESSIONS) return
    const oldest = this.#nodes.keys().next().value
    if (oldest !== undefined) this.#nodes.delete(oldest)
  }
}

const key = (adapter: string, target: string, session: string) => `${adapter}\u0000${target}\u0000${session}`
