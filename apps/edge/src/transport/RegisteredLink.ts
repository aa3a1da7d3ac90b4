// The link of a registered node: routes run events to the attempts that own them, sends what the run layer asks for,
// and is lost exactly once, whoever ends it. Everything here runs inside the callback of one socket read.

import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { CancelCode as WireCancelCode } from "@iop/platform-common/gen/iop/v1/run_pb"
import type { NodeStatus as WireStatus } from "@iop/platform-common/gen/iop/v1/status_pb"
import { boundedText } from "@iop/platform-common/observability/sanitize"
import {
  encodeAck,
  encodeCancel,
  encodeDrain,
  encodeGoodbye,
  encodePing,
  encodeRunRequest
} from "@iop/platform-common/protocol/edgeFrameWire"
import { type DecodedNodeFrame, decodeNodeFrame } from "@iop/platform-common/protocol/nodeFrameWire"
import { WireError } from "@iop/platform-common/protocol/WireError"
import type { CloseReason } from "@iop/proto-socket/CloseReason"
import type { FrameConnection } from "@iop/proto-socket/FrameConnection"
import { formatPeer } from "@iop/proto-socket/peerAddress"
import type { NodeEntry } from "../node/NodeEntry.ts"
import type { AttemptSink, CancelCode, LinkEnd, NodeLink, RunDispatch } from "../node/NodeLink.ts"
import type { NodeRecord } from "../node/NodeRecord.ts"
import { FrameBudget, frameBudgetText } from "./FrameBudget.ts"
import type { BeatingLink } from "./Heartbeats.ts"
import type { LinkHost } from "./LinkHost.ts"
import { connectionLoss, endRules } from "./linkEnds.ts"
import { readNodeStatus } from "./nodeStatus.ts"
import { RunRoutes } from "./RunRoutes.ts"
import type { LinkEndReason, ProtocolErrorKind } from "./TransportMetrics.ts"

/** A Goodbye gets this long to leave; then the socket is destroyed. */
const CLOSE_FLUSH_MS = 1000
/** When the edge stops it waits for all nodes at once, and for none for long. */
const SHUTDOWN_FLUSH_MS = 500
const MAX_GOODBYE_TEXT = 256

const wireCancelCodes: Readonly<Record<CancelCode, WireCancelCode>> = {
  caller: WireCancelCode.CALLER,
  deadline: WireCancelCode.DEADLINE,
  slow_consumer: WireCancelCode.SLOW_CONSUMER,
  protocol_error: WireCancelCode.PROTOCOL_ERROR,
  draining: WireCancelCode.DRAINING
}

export interface LinkIdentity {
  readonly record: NodeRecord
  readonly epoch: number
  readonly agent: string
  readonly bootId: Uint8Array
}

export class RegisteredLink implements NodeLink, BeatingLink {
  readonly epoch: number
  readonly remote: string
  readonly agent: string
  readonly record: NodeRecord
  /** A secret of the node's process: compared, never shown. */
  readonly bootId: Uint8Array
  lastFrameAt: number
  lastPingAt: number
  excusedUntil = 0
  /** Calls back at the next complete frame; for whoever wants to know whether the node is there. */
  onNextFrame: (() => void) | undefined
  readonly #host: LinkHost
  readonly #connection: FrameConnection
  readonly #routes: RunRoutes<RegisteredLink>
  readonly #budget: FrameBudget
  /** Acknowledgements of this turn: handle to seq. */
  readonly #acks = new Map<number, number>()
  /** Frames that wait for the RegisterAccepted, which is the first on the link. */
  #held: Array<() => void> | undefined = []
  #entry: NodeEntry | undefined
  #suspect = false
  #reading = false
  #ackScheduled = false
  #nonce = 0
  /** Pings that were not answered yet: their answers were asked for and cost the node nothing. */
  #pingsOut = 0
  #over = false

  constructor(host: LinkHost, connection: FrameConnection, identity: LinkIdentity) {
    this.#host = host
    this.#connection = connection
    this.#routes = new RunRoutes(host.handles, this)
    this.record = identity.record
    this.epoch = identity.epoch
    this.agent = identity.agent
    this.bootId = identity.bootId
    this.remote = formatPeer(connection.remoteAddress, connection.remotePort)
    const now = host.timers.now()
    this.lastFrameAt = now
    this.lastPingAt = now
    this.#budget = new FrameBudget(now)
  }

  /** Whether the link has ended. */
  get over(): boolean {
    return this.#over
  }

  /** The registry has the link; what concerns the node goes to its entry. */
  attached(entry: NodeEntry): void {
    this.#entry = entry
  }

  /** Sends the RegisterAccepted and then what had to wait for it. */
  open(accepted: Uint8Array): void {
    this.#connection.send(accepted, "control")
    const held = this.#held ?? []
    this.#held = undefined
    for (const send of held) send()
  }

  sendRun(
    dispatch: RunDispatch,
    sink: AttemptSink
  ): { readonly handle: number } | { readonly unsendable: string } {
    const handle = this.#routes.add(sink)
    const limit = this.#host.settings.maxEdgeFrameBytes
    let frame: Uint8Array
    try {
      frame = encodeRunRequest({ ...dispatch, handle })
    } catch (error) {
      this.#routes.withdraw(handle)
      if (error instanceof WireError) return { unsendable: error.message }
      throw error
    }
    if (frame.length > limit) {
      this.#routes.withdraw(handle)
      return { unsendable: `the input is ${frame.length} bytes on the wire, a node takes at most ${limit}` }
    }
    this.#send(() => this.#connection.send(frame, "data", handle))
    return { handle }
  }

  adopt(sink: AttemptSink): number {
    return this.#routes.add(sink)
  }

  ack(handle: number, seq: number): void {
    if (this.#over) return
    this.#acks.set(handle, Math.max(seq, this.#acks.get(handle) ?? 0))
    if (this.#reading || this.#ackScheduled) return
    this.#ackScheduled = true
    setImmediate(() => {
      this.#ackScheduled = false
      this.#flushAcks()
    })
  }

  cancel(handle: number, code: CancelCode, reason: string): "removed" | "sent" {
    if (this.#connection.unsend(handle)) return "removed"
    const frame = encodeCancel(handle, wireCancelCodes[code], reason)
    this.#send(() => this.#connection.send(frame, "control"))
    return "sent"
  }

  release(handle: number): void {
    this.#routes.release(handle)
  }

  drain(timeoutMs: number, reason: string): void {
    const frame = encodeDrain(Math.ceil(timeoutMs), reason)
    this.#send(() => this.#connection.send(frame, "control"))
  }

  end(code: LinkEnd, message: string): void {
    if (this.#over) return
    const rule = endRules[code]
    this.#flushAcks()
    this.#connection.send(encodeGoodbye(rule.goodbye, message), "control")
    this.#connection.close(message, code === "shutdown" ? SHUTDOWN_FLUSH_MS : CLOSE_FLUSH_MS)
    this.#lose(rule.metric, message, rule.mayResume)
  }

  ping(): void {
    this.#nonce = (this.#nonce + 1) >>> 0
    this.#pingsOut += 1
    const frame = encodePing(this.#nonce)
    this.#send(() => this.#connection.send(frame, "control"))
  }

  setSuspect(suspect: boolean): void {
    if (this.#suspect === suspect || this.#entry === undefined) return
    this.#suspect = suspect
    this.#host.registry.setSuspect(this.#entry, this, suspect)
    this.#host.log.write(
      suspect ? "warn" : "info",
      suspect ? "node misses heartbeats" : "node answers again",
      {
        ...this.#fields()
      }
    )
  }

  dead(silentMs: number): void {
    this.end("heartbeat", `heartbeats missed for ${Math.floor(silentMs / 1000)} s`)
  }

  /** The connection is closed. */
  closed(close: CloseReason): void {
    if (this.#over) return
    const loss = connectionLoss(close)
    if (loss.protocolError !== undefined) this.#host.metrics.protocolError(loss.protocolError)
    this.#lose(loss.metric, loss.reason, true)
  }

  /** A fault of the edge itself on this link: ends it and nothing else. */
  fault(cause: unknown): void {
    this.#host.log.fault("a link failed inside the edge", cause, this.#fields())
    this.#connection.destroy("a fault inside the edge")
    this.#lose("error", "a fault inside the edge", true)
  }

  /** All complete frames of one read. */
  receive(frames: ReadonlyArray<Uint8Array>): void {
    if (this.#over) return
    const now = this.#host.timers.now()
    this.lastFrameAt = now
    this.setSuspect(false)
    if (this.onNextFrame !== undefined) {
      const heard = this.onNextFrame
      this.onNextFrame = undefined
      heard()
    }
    this.#reading = true
    try {
      for (const frame of frames) {
        if (this.#over) break
        this.#receiveOne(frame, now)
      }
      this.#routes.endRead()
    } finally {
      this.#reading = false
    }
    this.#flushAcks()
  }

  #receiveOne(bytes: Uint8Array, now: number): void {
    let frame: DecodedNodeFrame
    try {
      frame = decodeNodeFrame(bytes)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#breach(error.reason, error.message)
      return
    }
    if (frame.unknownFields > 0) this.#host.metrics.unknownFields(frame.unknownFields)
    if (frame.kind === "run_event") {
      const taken = this.#routes.deliver(frame.handle, frame.seq, frame.event, bytes.length)
      if (!taken) this.#strayEvent(frame.handle, now)
      return
    }
    if (frame.kind === "pong" && this.#pingsOut > 0) {
      this.#pingsOut -= 1
      return
    }
    if (!this.#budget.spend(bytes.length, now)) {
      this.#breach("chatty", frameBudgetText)
      return
    }
    switch (frame.kind) {
      case "pong":
        return
      case "node_status":
        this.#status(frame.value)
        return
      case "goodbye": {
        const stops = frame.value.code === GoodbyeCode.SHUTDOWN
        const text = boundedText(frame.value.message, MAX_GOODBYE_TEXT)
        const what = stops ? "the node stopped" : "the node ended the link"
        this.#connection.close("the node said goodbye", CLOSE_FLUSH_MS)
        // Its runs are over only with its process; after any other goodbye it redials and goes on.
        this.#lose("node_goodbye", text === "" ? what : `${what}: ${text}`, !stops)
        return
      }
      case "register_request":
        this.#breach("second_register", "a second RegisterRequest on one link")
        return
      case "wrong_direction":
        this.#breach("wrong_direction", "a frame that only the edge may send")
        return
      case "unknown":
        this.#host.metrics.unknownBody()
        return
    }
  }

  #status(message: WireStatus): void {
    if (this.#entry === undefined) return
    const { status, ignored } = readNodeStatus(this.record, message)
    if (ignored > 0) {
      this.#host.log.noise("ignored", "warn", "node reports adapters or targets that are not its own", {
        ...this.#fields(),
        ignored
      })
    }
    this.#host.registry.setStatus(this.#entry, this, status)
  }

  #strayEvent(handle: number, now: number): void {
    const { kind, end } = this.#routes.stray(handle, now)
    this.#host.metrics.strayEvent(kind)
    this.#host.log.noise(
      // A flood of harmless ones must not hide the one that names a forger.
      kind === "forged" ? "forged_event" : "stray_event",
      "warn",
      kind === "forged"
        ? "node sent an event for a run of another node"
        : `node sent an event for ${kind === "ended" ? "a run that is over" : "an unknown run"}`,
      { ...this.#fields(), handle }
    )
    if (end !== undefined) this.#breach("stray_events", end)
  }

  #breach(kind: ProtocolErrorKind, message: string): void {
    this.#host.metrics.protocolError(kind)
    this.#host.log.noise("protocol_error", "warn", "node broke the protocol", {
      ...this.#fields(),
      kind,
      what: message
    })
    this.end("protocol_error", `protocol error: ${message}`)
  }

  #send(send: () => void): void {
    if (this.#held === undefined) send()
    else this.#held.push(send)
  }

  #flushAcks(): void {
    if (this.#acks.size === 0) return
    for (const [handle, seq] of this.#acks) {
      const frame = encodeAck(handle, seq)
      this.#send(() => this.#connection.send(frame, "control"))
    }
    this.#acks.clear()
  }

  /** Once per link: its runs are told first, so that nobody finds the node gone and its runs still there. */
  #lose(metric: LinkEndReason, reason: string, mayResume: boolean): void {
    if (this.#over) return
    this.#over = true
    this.#held = undefined
    this.#acks.clear()
    const host = this.#host
    try {
      host.runs.linkLost(this, reason, mayResume)
    } catch (cause) {
      host.log.fault("runs could not be taken from a lost link", cause, this.#fields())
    }
    this.#routes.clear()
    if (host.links.get(this.record.id) === this) host.links.delete(this.record.id)
    try {
      host.registry.detach(this, this.record.id, reason, mayResume)
    } catch (cause) {
      host.log.fault("a lost link could not be taken from the registry", cause, this.#fields())
    }
    host.metrics.linkEnded(metric)
    host.log.write("info", "node link ended", { ...this.#fields(), reason, mayResume })
    host.takeovers.incumbentGone(this.record.id)
  }

  #fields() {
    return { node: this.record.id, alias: this.record.alias, peer: this.remote, epoch: this.epoch }
  }
}
