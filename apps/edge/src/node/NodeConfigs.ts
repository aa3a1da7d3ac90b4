// The configuration payload of each node, built once: records never change while the edge runs.
import type { NodeConfigPayload } from "@iop/platform-common/gen/iop/v1/node_config_pb"
import { Context, Effect, Layer } from "effect"
import { buildConfigPayload } from "./configPayload.ts"
import type { NodeRecord } from "./NodeRecord.ts"
import { NodeStore } from "./NodeStore.ts"

export class NodeConfigs extends Context.Service<
  NodeConfigs,
  {
    /** The payload of a record of the store; its `revision` identifies it. */
    readonly of: (record: NodeRecord) => NodeConfigPayload
  }
>()("@iop/edge/node/NodeConfigs") {
  static readonly layer = Layer.effect(
    NodeConfigs,
    Effect.map(NodeStore, (store) => {
      const payloads = new Map(store.records.map((record) => [record, buildConfigPayload(record)]))
      return { of: (record) => payloads.get(record) ?? buildConfigPayload(record) }
    })
  )
}
