// The nodes that may connect: seeded once from the configuration and never changed while the edge runs.
import { createHash, timingSafeEqual } from "node:crypto"
import type { EdgeConfig, NodeConfig } from "@iop/platform-common/config/EdgeConfig"
import { Context, Data, Duration, Layer, Redacted } from "effect"
import { NodeId, type NodeRecord } from "./NodeRecord.ts"

/** The seed holds records that cannot live together. Names both, never a token. */
export class NodeSeedError extends Data.TaggedError("NodeSeedError")<{
  readonly problems: ReadonlyArray<string>
}> {
  override get message() {
    return this.problems.join("\n")
  }
}

export class NodeStore extends Context.Service<
  NodeStore,
  {
    /** All records, in the order of the file. */
    readonly records: ReadonlyArray<NodeRecord>
    readonly findById: (id: string) => NodeRecord | undefined
    /** By id or alias: a name means one node. */
    readonly findByName: (name: string) => NodeRecord | undefined
    /** The node that owns the token. Takes the same time whatever is wrong with it. */
    readonly findByToken: (token: string) => NodeRecord | undefined
  }
>()("@iop/edge/node/NodeStore") {
  /** A store of the file's nodes; dies with a `NodeSeedError` when the configuration was not checked before. */
  static readonly layer = (config: EdgeConfig) =>
    Layer.sync(NodeStore, () => makeNodeStore(config.nodes.map(toRecord)))
}

/** SHA-256 of a token or key. */
export const digestSecret = (secret: string): Uint8Array =>
  createHash("sha256").update(secret, "utf8").digest()

/** The record of one node of the file. */
export const toRecord = (node: NodeConfig): NodeRecord => ({
  id: NodeId.make(node.id),
  alias: node.alias ?? node.id,
  tokenDigest:
    node.token_sha256 !== undefined
      ? Buffer.from(node.token_sha256, "hex")
      : digestSecret(node.token === undefined ? "" : Redacted.value(node.token)),
  labels: node.labels,
  runtime: {
    ...(node.runtime.slots === undefined ? {} : { slots: node.runtime.slots }),
    drainTimeoutMs: Duration.toMillis(node.runtime.drain_timeout),
    probeIntervalMs: Duration.toMillis(node.runtime.probe_interval)
  },
  adapters: node.adapters.map((adapter) => ({
    name: adapter.name,
    type: adapter.type,
    slots: adapter.slots,
    targets: adapter.targets,
    settings: adapter
  }))
})

const emptyDigest = Buffer.from(digestSecret(""))

/** A store of the records. Throws `NodeSeedError` on an empty token or a token, id or alias that two records share. */
export const makeNodeStore = (records: ReadonlyArray<NodeRecord>): NodeStore["Service"] => {
  const problems: Array<string> = []
  const byId = new Map<string, NodeRecord>()
  const byName = new Map<string, NodeRecord>()
  const byDigest = new Map<string, NodeRecord>()
  for (const record of records) {
    if (emptyDigest.equals(record.tokenDigest)) problems.push(`node ${record.id} has an empty token`)
    if (byId.has(record.id)) problems.push(`two nodes have the id ${record.id}`)
    byId.set(record.id, record)
    for (const name of new Set([record.id, record.alias])) {
      const other = byName.get(name)
      if (other !== undefined && other !== record) {
        problems.push(
          `nodes ${other.id} and ${record.id} share the name ${name}; an id or alias must mean one node`
        )
      }
      byName.set(name, record)
    }
    const digest = Buffer.from(record.tokenDigest).toString("hex")
    const owner = byDigest.get(digest)
    if (owner !== undefined) problems.push(`nodes ${owner.id} and ${record.id} have the same token`)
    byDigest.set(digest, record)
  }
  if (problems.length > 0) throw new NodeSeedError({ problems })
  const frozen = Object.freeze([...records])
  return {
    records: frozen,
    findById: (id) => byId.get(id),
    findByName: (name) => byName.get(name),
    findByToken: (token) => {
      // Every record is compared, so that the time says nothing about which of them came close.
      const digest = digestSecret(token)
      let found: NodeRecord | undefined
      for (const record of frozen) {
        if (timingSafeEqual(digest, record.tokenDigest)) found = record
      }
      return found
    }
  }
}
