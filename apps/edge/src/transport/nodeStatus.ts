// From a node's own words about itself to what the edge keeps: bounded, escaped, and only about adapters and targets
// that the node's record gives it.
import {
  AdapterState as WireState,
  type NodeStatus as WireStatus,
  type Target as WireTarget
} from "@iop/platform-common/gen/iop/v1/status_pb"
import { boundedText } from "@iop/platform-common/observability/sanitize"
import type { NodeRecord } from "../node/NodeRecord.ts"
import type { AdapterState, AdapterStatus, NodeStatus, TargetStatus } from "../node/NodeStatus.ts"

const MAX_REASON = 512
const MAX_REVISION = 64
/** A name that is longer cannot be cut, it would be another name: the target is left out. */
const MAX_TARGET_NAME = 256
const MAX_CAPABILITY = 64
const CONTROL = /\p{Cc}/u

export interface ReadStatus {
  readonly status: NodeStatus
  /** Adapters that the record does not have, and targets whose name is none. */
  readonly ignored: number
}

export const readNodeStatus = (record: NodeRecord, message: WireStatus): ReadStatus => {
  const configured = new Map(record.adapters.map((adapter) => [adapter.name, adapter.targets]))
  const adapters = new Map<string, AdapterStatus>()
  let ignored = 0
  for (const adapter of message.adapters) {
    const offered = configured.get(adapter.name)
    if (offered === undefined) {
      ignored += 1
      continue
    }
    const targets: Array<TargetStatus> = []
    for (const target of adapter.targets) {
      if (!isTargetName(target.name)) ignored += 1
      else if (offered.length === 0 || offered.includes(target.name)) targets.push(readTarget(target))
    }
    const state = states[adapter.state]
    adapters.set(adapter.name, {
      name: adapter.name,
      state: state ?? "unavailable",
      reason:
        state === undefined
          ? `the node reports state ${adapter.state}, which this edge does not know`
          : boundedText(adapter.reason, MAX_REASON),
      targets
    })
  }
  const revision = boundedText(message.configRevision, MAX_REVISION)
  return { status: { revision, draining: message.draining, adapters }, ignored }
}

const states: Readonly<Partial<Record<WireState, AdapterState>>> = {
  [WireState.STARTING]: "starting",
  [WireState.READY]: "ready",
  [WireState.DEGRADED]: "degraded",
  [WireState.UNAVAILABLE]: "unavailable"
}

const isTargetName = (name: string): boolean =>
  name !== "" && name.length <= MAX_TARGET_NAME && !CONTROL.test(name)

const readTarget = (target: WireTarget): TargetStatus => ({
  name: target.name,
  capabilities: target.capabilities.map((capability) => boundedText(capability, MAX_CAPABILITY)),
  ...(target.contextLength === 0 ? {} : { contextLength: target.contextLength })
})
