// A NodeStatus from what the adapters say about themselves, within what the edge takes.

import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { MAX_CAPABILITIES, MAX_TARGETS } from "@iop/platform-common/protocol/limits"
import { encodeNodeStatus } from "@iop/platform-common/protocol/nodeFrameWire"
import type { ConfiguredAdapter } from "./AdapterSet.ts"

const STATES = {
  starting: AdapterState.STARTING,
  ready: AdapterState.READY,
  degraded: AdapterState.DEGRADED,
  unavailable: AdapterState.UNAVAILABLE
} as const

/**
 * The frame of a NodeStatus. Targets beyond the protocol's limit are left out; if the lists are still larger than a
 * frame of `maxFrameBytes`, the adapters are reported as unavailable for that reason, without targets.
 */
export const nodeStatusFrame = (status: {
  readonly revision: string
  readonly adapters: ReadonlyArray<ConfiguredAdapter>
  readonly draining: boolean
  readonly maxFrameBytes: number
}): Uint8Array => {
  const { adapters, draining, maxFrameBytes, revision } = status
  const frame = encodeNodeStatus({
    configRevision: revision,
    draining,
    adapters: adapters.map((adapter) => ({
      ...figuresOf(adapter),
      state: STATES[adapter.state],
      reason: adapter.reason,
      targets: adapter.targets.slice(0, MAX_TARGETS).map((target) => ({
        name: target.name,
        capabilities: target.capabilities?.slice(0, MAX_CAPABILITIES) ?? [],
        contextLength: target.contextLength ?? 0
      }))
    }))
  })
  if (frame.length <= maxFrameBytes) return frame
  return encodeNodeStatus({
    configRevision: revision,
    draining,
    adapters: adapters.map((adapter) => ({
      ...figuresOf(adapter),
      state: AdapterState.UNAVAILABLE,
      reason: `the node's targets take ${frame.length} bytes to list, and the edge takes ${maxFrameBytes}; name fewer targets in the configuration`,
      targets: []
    }))
  })
}

const figuresOf = ({ config, slotsInUse }: ConfiguredAdapter) => ({
  name: config.name,
  slots: config.slots,
  slotsInUse
})
