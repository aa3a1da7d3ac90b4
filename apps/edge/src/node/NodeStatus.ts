// What a node says about itself, as the edge keeps it.

export type AdapterState = "starting" | "ready" | "degraded" | "unavailable"

export interface TargetStatus {
  readonly name: string
  readonly capabilities: ReadonlyArray<string>
  /** Tokens; absent: unknown. */
  readonly contextLength?: number
}

export interface AdapterStatus {
  readonly name: string
  readonly state: AdapterState
  /** For a person, escaped and bounded; empty when ready. */
  readonly reason: string
  readonly targets: ReadonlyArray<TargetStatus>
}

export interface NodeStatus {
  /** The configuration that is in force at the node. */
  readonly revision: string
  readonly draining: boolean
  readonly adapters: ReadonlyMap<string, AdapterStatus>
}
