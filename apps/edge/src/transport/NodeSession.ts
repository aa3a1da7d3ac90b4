// One accepted connection, from the first byte to the last: accepted → registering → registered → closed. Until it is
// registered it may say one thing, within one time limit; afterwards its frames belong to its link.

import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import type { RegisterRequest } from "@iop/platform-common/gen/iop/v1/register_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { encodeGoodbye, encodeRegisterRejected } from "@iop/platform-common/protocol/edgeFrameWire"
import { type DecodedNodeFrame, decodeNodeFrame } from "@iop/platform-common/protocol/nodeFrameWire"
import { WireError } from "@iop/platform-common/protocol/WireError"
import type { CloseReason } from "@iop/proto-socket/CloseReason"
import { describeForeignBytes } from "@iop/proto-socket/describePeer"
import type { FrameConnection, FrameCounters } from "@iop/proto-socket/FrameConnection"
import type { FrameSocket } from "@iop/proto-socket/FrameListener"
import { formatPeer } from "@iop/proto-socket/peerAddress"
import type { NodeRecord } from "../node/NodeRecord.ts"
import { admitNode } from "./admitNode.ts"
import { alreadyConnected, checkRegistration, malformed, type Rejection } from "./checkRegistration.ts"
import type { LinkHost } from "./LinkHost.ts"
import { connectionLoss } from "./linkEnds.ts"
import type { RegisteredLink } from "./RegisteredLink.ts"
import { type Newcomer, sameBootId } from "./Takeovers.ts"
import type { ProtocolErrorKind, RegistrationOutcome } from "./TransportMetrics.ts"

/** A refusal gets this long to leave. */
const REJECT_FLUSH_MS = 1000
/** When the edge stops it waits for no stranger. */
const STOP_FLUSH_MS = 100

type State =
  | { readonly name: "accepted" }
  | { readonly name: "waiting"; readonly record: NodeRecord; readonly newcomer: Newcomer }
  | { readonly name: "registered"; readonly link: RegisteredLink }
  /** Refused or ended by the edge; the socket may still be open. */
  | { readonly name: "ended" }

const outcomes: Readonly<Partial<Record<RejectCode, RegistrationOutcome>>> = {
  [RejectCode.UNKNOWN_TOKEN]: "unknown_token",
  [RejectCode.UNSUPPORTED_VERSION]: "unsupported_version",
  [RejectCode.ALREADY_CONNECTED]: "already_connected",
  [RejectCode.DRAINING]: "draining",
  [RejectCode.MALFORMED]: "malformed"
}

export class NodeSession {
  readonly #host: LinkHost
  readonly #connection: FrameConnection
  readonly #peer: string
  readonly #cancelTimeout: () => void
  readonly #closed: (session: NodeSession) => void
  #state: State = { name: "accepted" }
  #told: FrameCounters = { bytesIn: 0, bytesOut: 0, framesIn: 0, framesOut: 0, writes: 0 }

  /** @param closed called once, when the socket is closed */
  constructor(host: LinkHost, socket: FrameSocket, closed: (session: NodeSession) => void) {
    this.#host = host
    this.#closed = closed
    this.#peer = formatPeer(socket.remoteAddress, socket.remotePort)
    this.#connection = socket.open({
      maxFrameBytes: host.settings.maxRegisterFrameBytes,
      writeDeadlineMs: host.settings.writeDeadlineMs,
      onFrames: (frames) => this.#guard(() => this.#onFrames(frames)),
      onClose: (reason) => this.#guard(() => this.#onClose(reason))
    })
    // Absolute: bytes that drip in do not prolong it.
    this.#cancelTimeout = host.timers.after(host.settings.registerTimeoutMs, () =>
      this.#guard(() => this.#timedOut())
    )
    host.metrics.connectionAccepted()
    host.sessions.add(this)
    const displaced = host.unregistered.enter(this, socket.remoteAddress)
    displaced?.displace()
  }

  /** Makes room for a newer connection. */
  displace(): void {
    this.#host.metrics.connectionRefused("displaced")
    this.#host.log.noise(
      "refused",
      "warn",
      "too many connections that have not registered, the oldest goes",
      {
        peer: this.#peer,
        limit: this.#host.settings.maxUnregistered
      }
    )
    this.#finish()
    this.#connection.destroy("too many connections that have not registered")
  }

  /** Ends the connection because the edge stops. */
  stop(): void {
    this.#guard(() => {
      if (this.#state.name === "registered") {
        this.#state.link.end("shutdown", "the edge is stopping")
        return
      }
      if (this.#state.name === "ended") return
      this.#finish()
      this.#connection.send(encodeGoodbye(GoodbyeCode.SHUTDOWN, "the edge is stopping"), "control")
      this.#connection.close("the edge is stopping", STOP_FLUSH_MS)
    })
  }

  /** Tells the metrics what went over the connection since the last time. */
  countTraffic(): void {
    const now = this.#connection.counters
    const last = this.#told
    if (now.bytesIn === last.bytesIn && now.bytesOut === last.bytesOut) return
    this.#host.metrics.traffic({
      bytesIn: now.bytesIn - last.bytesIn,
      bytesOut: now.bytesOut - last.bytesOut,
      framesIn: now.framesIn - last.framesIn,
      framesOut: now.framesOut - last.framesOut
    })
    this.#told = { ...now }
  }

  /** A fault of the edge on one connection ends that connection. */
  #guard(run: () => void): void {
    try {
      run()
    } catch (cause) {
      if (this.#state.name === "registered") {
        this.#state.link.fault(cause)
        return
      }
      this.#finish()
      this.#host.log.fault("a connection failed inside the edge", cause, { peer: this.#peer })
      this.#connection.destroy("a fault inside the edge")
    }
  }

  #onFrames(frames: ReadonlyArray<Uint8Array>): void {
    let at = 0
    while (at < frames.length && this.#state.name !== "registered") {
      if (this.#state.name === "ended") return
      this.#onEarlyFrame(frames[at]!)
      at += 1
    }
    if (this.#state.name === "registered" && at < frames.length) {
      this.#state.link.receive(at === 0 ? frames : frames.slice(at))
    }
  }

  #onEarlyFrame(bytes: Uint8Array): void {
    let frame: DecodedNodeFrame
    try {
      frame = decodeNodeFrame(bytes)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#breach(error.reason, error.message)
      return
    }
    if (frame.unknownFields > 0) this.#host.metrics.unknownFields(frame.unknownFields)
    if (frame.kind === "wrong_direction") {
      this.#breach("wrong_direction", "a frame that only the edge may send")
      return
    }
    if (this.#state.name === "waiting") {
      if (frame.kind === "register_request") {
        this.#breach("second_register", "a second RegisterRequest on one link")
      } else {
        this.#breach("not_registered", "a frame came before the RegisterRequest was answered")
      }
      return
    }
    if (frame.kind !== "register_request") {
      this.#breach("not_registered", "the first frame of a node has to be its RegisterRequest")
      return
    }
    this.#register(frame.value)
  }

  #register(request: RegisterRequest): void {
    const host = this.#host
    const { record, rejection } = {
      record: undefined,
      ...checkRegistration(request, host.store, host.draining)
    }
    if (rejection !== undefined) {
      if (rejection.code === RejectCode.UNKNOWN_TOKEN && this.#throttled()) return
      this.#reject(rejection)
      return
    }
    if (record === undefined) return
    this.#cancelTimeout()
    // From here on there is one connection per node, whatever happens: the limit for strangers is not for it.
    host.unregistered.leave(this)
    const incumbent = host.links.get(record.id)
    if (incumbent === undefined) {
      this.#admit(record, request)
      return
    }
    if (sameBootId(incumbent.bootId, request.bootId)) {
      host.takeovers.refuseWaiting(record.id, this.#peer)
      incumbent.end("replaced", `replaced by a newer link of the same process, from ${this.#peer}`)
      this.#admit(record, request)
      return
    }
    const newcomer: Newcomer = {
      bootId: request.bootId,
      remote: this.#peer,
      admit: () =>
        this.#guard(() => {
          // The edge may have begun to drain meanwhile.
          const again = checkRegistration(request, host.store, host.draining)
          if (again.rejection !== undefined) this.#reject(again.rejection)
          else this.#admit(record, request)
        }),
      refuse: (address) =>
        this.#guard(() => this.#reject(alreadyConnected(record, address, host.settings.takeoverProbeMs))),
      superseded: () =>
        this.#guard(() => {
          this.#finish()
          host.metrics.registration("abandoned")
          this.#connection.close("a newer connection of the same process took its place", REJECT_FLUSH_MS)
        })
    }
    this.#state = { name: "waiting", record, newcomer }
    host.takeovers.ask(record, incumbent, newcomer)
  }

  #admit(record: NodeRecord, request: RegisterRequest): void {
    this.#finish()
    const link = admitNode(this.#host, this.#connection, record, request)
    this.#state = { name: "registered", link }
  }

  /** Counts a wrong token. Whether the peer gets no answer, because its address had too many of them. */
  #throttled(): boolean {
    const { throttle, timers, metrics, log } = this.#host
    const address = this.#connection.remoteAddress
    const verdict = throttle.failed(address, timers.now())
    if (verdict === "answer") return false
    metrics.registration("throttled")
    if (verdict === "first_throttled") {
      log.noise(
        "rejected",
        "warn",
        "too many wrong tokens from one address, it gets no answers for a while",
        {
          address,
          perMinute: this.#host.settings.failedTokensPerMinute
        }
      )
    }
    this.#finish()
    this.#connection.destroy("too many wrong tokens from this address")
    return true
  }

  #reject(rejection: Rejection): void {
    this.#finish()
    const outcome = outcomes[rejection.code] ?? "malformed"
    this.#host.metrics.registration(outcome)
    this.#host.log.noise("rejected", "warn", "registration rejected", {
      peer: this.#peer,
      code: outcome,
      why: rejection.message
    })
    this.#connection.send(encodeRegisterRejected(rejection), "control")
    this.#connection.close("registration rejected", REJECT_FLUSH_MS)
  }

  /** The peer broke the protocol before it was registered. */
  #breach(kind: ProtocolErrorKind, message: string): void {
    this.#host.metrics.protocolError(kind)
    const foreign = this.#foreign()
    this.#reject(malformed(foreign ?? message).rejection)
  }

  #timedOut(): void {
    if (this.#state.name !== "accepted") return
    this.#finish()
    this.#host.metrics.registration("timeout")
    this.#host.log.noise("connection", "info", this.#foreign() ?? "peer did not register in time", {
      peer: this.#peer,
      bytes: this.#connection.counters.bytesIn,
      timeoutMs: this.#host.settings.registerTimeoutMs
    })
    this.#connection.destroy("did not register in time")
  }

  #onClose(close: CloseReason): void {
    this.countTraffic()
    this.#host.sessions.delete(this)
    this.#closed(this)
    const state = this.#state
    if (state.name === "registered") {
      state.link.closed(close)
      return
    }
    if (state.name === "ended") return
    this.#finish()
    const loss = connectionLoss(close)
    if (loss.protocolError !== undefined) this.#host.metrics.protocolError(loss.protocolError)
    this.#host.metrics.registration(loss.protocolError === undefined ? "abandoned" : "malformed")
    // Probes of port scanners and load balancers connect and leave: not worth a line.
    const silent = this.#connection.counters.bytesIn === 0
    this.#host.log.noise(
      loss.protocolError === undefined ? "connection" : "protocol_error",
      silent ? "debug" : "info",
      this.#foreign() ?? "connection ended before it registered",
      { peer: this.#peer, reason: loss.reason }
    )
  }

  /** What a stranger speaks, in words, where its first bytes tell. */
  #foreign(): string | undefined {
    const protocol = describeForeignBytes(this.#connection.firstBytes)
    if (protocol === undefined) return undefined
    return protocol === "TLS"
      ? "peer speaks TLS on the node port, which has no tls configured"
      : `peer speaks ${protocol} on the node port`
  }

  /** The time of being a stranger is over: gives back what it had claimed. */
  #finish(): void {
    const before = this.#state
    this.#state = { name: "ended" }
    this.#cancelTimeout()
    this.#host.unregistered.leave(this)
    if (before.name === "waiting") this.#host.takeovers.withdraw(before.record.id, before.newcomer)
  }
}
