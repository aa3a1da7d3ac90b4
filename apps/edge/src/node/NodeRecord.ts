// A node as the configuration file defines it. Records are made once, when the store is seeded, and never change.
import type { AdapterConfig } from "@iop/platform-common/config/EdgeConfig"
import { Schema } from "effect"

/** Identity of a node, from the configuration alone. */
export const NodeId = Schema.NonEmptyString.pipe(Schema.brand("NodeId"))
export type NodeId = typeof NodeId.Type

/** One adapter of a record, with its settings as the file gives them. */
export interface AdapterRecord {
  readonly name: string
  readonly type: AdapterConfig["type"]
  /** Runs in flight on this adapter of this node. */
  readonly slots: number
  /** Targets to offer; empty: those that the node discovers. */
  readonly targets: ReadonlyArray<string>
  readonly settings: AdapterConfig
}

export interface NodeRecord {
  readonly id: NodeId
  readonly alias: string
  /** SHA-256 of the token: the token itself is not kept. */
  readonly tokenDigest: Uint8Array
  readonly labels: Readonly<Record<string, string>>
  readonly runtime: {
    /** Runs in flight on the whole node; absent: as many as its adapters have. */
    readonly slots?: number
    readonly drainTimeoutMs: number
    readonly probeIntervalMs: number
  }
  readonly adapters: ReadonlyArray<AdapterRecord>
}
