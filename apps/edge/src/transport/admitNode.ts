// The moment of registration: the link enters the registry, the runs that the node still holds are taken up again or
// given up, and the node is told everything in one frame, the first on its link.
import type { HeldRun, RegisterRequest } from "@iop/platform-common/gen/iop/v1/register_pb"
import { boundedText } from "@iop/platform-common/observability/sanitize"
import { encodeRegisterAccepted } from "@iop/platform-common/protocol/edgeFrameWire"
import { PROTOCOL_VERSION } from "@iop/platform-common/protocol/version"
import type { FrameConnection } from "@iop/proto-socket/FrameConnection"
import type { NodeRecord } from "../node/NodeRecord.ts"
import type { HeldRunAnswer } from "../run/HeldRun.ts"
import type { LinkHost } from "./LinkHost.ts"
import { RegisteredLink } from "./RegisteredLink.ts"

const MAX_AGENT = 128

/** Registers the node on the connection. The link that it had before is over by now. */
export const admitNode = (
  host: LinkHost,
  connection: FrameConnection,
  record: NodeRecord,
  request: RegisterRequest
): RegisteredLink => {
  const { settings, metrics } = host
  const link = new RegisteredLink(host, connection, {
    record,
    epoch: host.nextEpoch++,
    agent: agentText(request),
    bootId: request.bootId
  })
  host.links.set(record.id, link)
  try {
    const entry = host.registry.attach(record, link)
    link.attached(entry)
    const held = distinct(request.heldRuns)
    const answers = host.runs.resume(entry, link, held)
    const decisions = held.map((run, index) => decide(link, run, answers[index]))
    link.open(
      encodeRegisterAccepted({
        nodeId: record.id,
        alias: record.alias,
        edgeId: settings.edgeId,
        linkEpoch: BigInt(link.epoch),
        protocolVersion: PROTOCOL_VERSION,
        config: host.configs.of(record),
        heartbeatIntervalMs: settings.heartbeat.intervalMs,
        heartbeatSuspectAfter: settings.heartbeat.suspectAfter,
        heartbeatDeadAfter: settings.heartbeat.deadAfter,
        limits: {
          maxNodeFrameBytes: settings.maxNodeFrameBytes,
          maxEdgeFrameBytes: settings.maxEdgeFrameBytes,
          runWindowBytes: settings.runWindowBytes
        },
        heldRuns: decisions
      })
    )
    connection.setMaxFrameBytes(settings.maxNodeFrameBytes)
    metrics.registration("accepted")
    host.log.write("info", "node registered", {
      node: record.id,
      alias: record.alias,
      peer: link.remote,
      agent: link.agent,
      epoch: link.epoch,
      resumed: decisions.filter((decision) => decision.decision.case === "resume").length,
      givenUp: decisions.filter((decision) => decision.decision.case === "cancel").length
    })
    warnOfMissingKinds(host, record, request)
  } catch (cause) {
    link.fault(cause)
  }
  return link
}

const agentText = (request: RegisterRequest): string =>
  boundedText(`${request.agentName || "unnamed"}/${request.agentVersion || "0"}`, MAX_AGENT)

/** The held runs as claims; an attempt that is named twice counts once. */
const distinct = (held: ReadonlyArray<HeldRun>): ReadonlyArray<HeldRun> => {
  const seen = new Set<string>()
  return held.filter(({ runId, attempt }) => {
    const key = `${attempt} ${runId}`
    return !seen.has(key) && seen.add(key)
  })
}

const decide = (link: RegisteredLink, run: HeldRun, answer: HeldRunAnswer | undefined) => {
  const { runId, attempt } = run
  if (answer?.resume !== true) {
    const reason = answer?.reason ?? "the edge does not know the run"
    return { runId, attempt, decision: { case: "cancel" as const, value: { reason } } }
  }
  const handle = link.adopt(answer.sink)
  answer.attach(handle)
  return {
    runId,
    attempt,
    decision: { case: "resume" as const, value: { afterSeq: answer.afterSeq, handle } }
  }
}

/** A configuration that the box cannot run shows at once, and not first as an adapter that never becomes ready. */
const warnOfMissingKinds = (host: LinkHost, record: NodeRecord, request: RegisterRequest): void => {
  const kinds = new Set(request.adapterKinds)
  for (const { name, settings } of record.adapters) {
    const kind = settings.type === "custom" ? settings.kind : settings.type
    if (!kinds.has(kind)) {
      host.log.write("warn", "node cannot run one of its adapters", { node: record.id, adapter: name, kind })
    }
  }
}
