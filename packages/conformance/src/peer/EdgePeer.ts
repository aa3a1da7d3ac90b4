// The kit as an edge: one link with the node that is judged, from its RegisterRequest on, and the runs on it.
import type { Socket } from "node:net"
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { EdgeFrameSchema, type NodeFrame, NodeFrameSchema } from "@iop/platform-common/gen/iop/v1/frame_pb"
import type { AdapterConfigSchema } from "@iop/platform-common/gen/iop/v1/node_config_pb"
import type { HeldRunDecisionSchema, RegisterRequest } from "@iop/platform-common/gen/iop/v1/register_pb"
import type { RunEvent } from "@iop/platform-common/gen/iop/v1/run_event_pb"
import type { RunRequestSchema } from "@iop/platform-common/gen/iop/v1/run_pb"
import { AdapterState, type NodeStatus } from "@iop/platform-common/gen/iop/v1/status_pb"
import { expect, RuleBroken } from "../outcomes.ts"
import { frameOf } from "./framing.ts"
import { describe, Peer } from "./Peer.ts"

/** A body that an edge may send. */
export type EdgeBody = NonNullable<MessageInitShape<typeof EdgeFrameSchema>["body"]>
type NodeCase = NonNullable<NodeFrame["body"]["case"]>
/** The message of a body that the node sends. */
export type NodeValue<Case extends NodeCase> = Extract<NodeFrame["body"], { case: Case }>["value"]
/** What an acceptance says, as far as a check wants it otherwise. */
export interface Acceptance {
  readonly config?: Configuration
  readonly heartbeatIntervalMs?: number
  readonly heartbeatSuspectAfter?: number
  readonly heartbeatDeadAfter?: number
  readonly limits?: {
    readonly maxNodeFrameBytes: number
    readonly maxEdgeFrameBytes: number
    readonly runWindowBytes: number
  }
  readonly heldRuns?: Array<MessageInitShape<typeof HeldRunDecisionSchema>>
}

/** A configuration that the kit sends. */
export interface Configuration {
  readonly revision: string
  readonly runtime?: { readonly drainTimeoutMs: number; readonly probeIntervalMs: number }
  readonly adapters: Array<MessageInitShape<typeof AdapterConfigSchema>>
}

/** The bytes of an EdgeFrame, without a length. */
export const edgePayload = (body: EdgeBody): Uint8Array =>
  toBinary(EdgeFrameSchema, create(EdgeFrameSchema, { body }))

/** The bytes of an EdgeFrame, with its length. */
export const edgeFrame = (body: EdgeBody): Buffer => frameOf(edgePayload(body))

/** An event as it came. */
export interface CameEvent {
  readonly seq: number
  readonly event: RunEvent["event"]
  /** Length of its frame, as the window counts it. */
  readonly bytes: number
}

const isTerminal = ({ event }: CameEvent): boolean =>
  event.case === "completed" || event.case === "failed" || event.case === "cancelled"

/** A run that the kit gave to the node. */
export class EdgeRun {
  readonly runId: string
  readonly attempt = 1
  handle: number
  /** All events, over all links. */
  readonly events: Array<CameEvent> = []
  /** Whether each event is acknowledged when it comes. */
  acknowledges = true
  /** The last acknowledged event. */
  ackedSeq = 0
  peer: EdgePeer
  readonly #watchers = new Set<() => void>()

  constructor(peer: EdgePeer, runId: string, handle: number) {
    this.peer = peer
    this.runId = runId
    this.handle = handle
  }

  /** Text of all text deltas. */
  get text(): string {
    return this.events
      .map(({ event }) =>
        event.case === "delta" && event.value.content.case === "text" ? event.value.content.value : ""
      )
      .join("")
  }

  get lastSeq(): number {
    return this.events.at(-1)?.seq ?? 0
  }

  /** Bytes of events that are not acknowledged. */
  get unackedBytes(): number {
    return this.events.filter(({ seq }) => seq > this.ackedSeq).reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Acknowledges all events up to this one. */
  ack(seq: number): void {
    this.ackedSeq = Math.max(this.ackedSeq, seq)
    this.peer.send({ case: "runAck", value: { handle: this.handle, seq } })
  }

  /** Asks the node to stop it. */
  cancel(): void {
    this.peer.send({ case: "runCancel", value: { handle: this.handle, code: 1, reason: "conformance" } })
  }

  /** Waits until `found` gives something. Fails if the link ends before, unless it did so already. */
  until<A>(what: string, found: () => A | undefined, boundMs = this.peer.patienceMs): Promise<A> {
    const now = found()
    if (now !== undefined) return Promise.resolve(now)
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        this.#watchers.delete(look)
      }
      const look = () => {
        const value = found()
        if (value === undefined) return
        done()
        resolve(value)
      }
      const timer = setTimeout(() => {
        done()
        const last = this.events.at(-1)
        const came =
          last === undefined ? "no event" : `event ${last.seq}, ${last.event.case}, as the last one`
        reject(
          new RuleBroken(what, `${came} within ${boundMs} ms${this.peer.over ? "; the link has ended" : ""}`)
        )
      }, boundMs)
      this.#watchers.add(look)
    })
  }

  /** Waits for the terminal event, and that the events before it obey the grammar. */
  async terminal(boundMs?: number): Promise<CameEvent> {
    const last = await this.until("a terminal event", () => this.events.find(isTerminal), boundMs)
    this.checkGrammar()
    return last
  }

  /** Waits for the run to complete. */
  async completed(boundMs?: number): Promise<void> {
    const { event } = await this.terminal(boundMs)
    expect(event.case === "completed", "completed", () => describe({ body: event }))
  }

  /** Fails unless the events so far have the numbers and the order that they must have. */
  checkGrammar(): void {
    for (const [at, came] of this.events.entries()) {
      const { event, seq } = came
      expect(seq === at + 1, `event ${at + 1} of run ${this.runId}`, () => `event ${seq}`)
      if (at === 0) {
        const may = event.case === "started" || event.case === "failed" || event.case === "cancelled"
        expect(may, "started as the first event (or failed, or cancelled)", () => String(event.case))
      } else {
        expect(event.case !== "started", "started once", () => "a second one")
        const before = this.events[at - 1]
        expect(before === undefined || !isTerminal(before), "nothing after a terminal event", () =>
          String(event.case)
        )
      }
    }
  }

  /** Takes an event; for the link. */
  came(came: CameEvent): void {
    // What comes again after a resumption is the same event.
    if (came.seq <= this.lastSeq && this.events.some(({ seq }) => seq === came.seq)) this.repeated.push(came)
    else this.events.push(came)
    if (this.acknowledges) this.ack(came.seq)
    for (const look of [...this.#watchers]) look()
  }

  /** Events whose number had come before. */
  readonly repeated: Array<CameEvent> = []
}

/** A link of the kit with a node. */
export class EdgePeer extends Peer<NodeFrame> {
  /** Milliseconds of the monotonic clock when the node connected. */
  readonly connectedAt = performance.now()
  readonly runs = new Map<number, EdgeRun>()
  /** Events of handles that were never given. */
  readonly strays: Array<RunEvent> = []
  #sizes: Array<number> = []
  #lastHandle = 0
  #nonce = 0

  constructor(socket: Socket, patienceMs: number) {
    const sizes: Array<number> = []
    super(
      socket,
      (payload) => {
        sizes.push(payload.length)
        return fromBinary(NodeFrameSchema, payload)
      },
      patienceMs
    )
    this.#sizes = sizes
  }

  /** Sends bodies, in one write. */
  send(...bodies: ReadonlyArray<EdgeBody>): void {
    this.sendBytes(Buffer.concat(bodies.map(edgeFrame)))
  }

  /** The next frame of the kind that was not taken yet. */
  async next<Case extends NodeCase>(kind: Case, what: string, boundMs?: number): Promise<NodeValue<Case>> {
    return this.take(
      what,
      ({ body }) => (body.case === kind ? (body.value as NodeValue<Case>) : undefined),
      boundMs
    )
  }

  /** The node's first frame, which must be its RegisterRequest. */
  async request(boundMs?: number): Promise<RegisterRequest> {
    const frame = await this.take("a RegisterRequest", (first) => first, boundMs)
    if (frame.body.case === "registerRequest") return frame.body.value
    throw new RuleBroken("a RegisterRequest as the first frame", describe(frame))
  }

  /** Waits for a status for which this holds. */
  async status(what: string, holds: (status: NodeStatus) => boolean): Promise<NodeStatus> {
    return this.take(what, ({ body }) =>
      body.case === "nodeStatus" && holds(body.value) ? body.value : undefined
    )
  }

  /** Waits until the adapter is ready with the revision that was sent. */
  async ready(adapter: string, revision: string): Promise<NodeStatus> {
    return this.status(`a NodeStatus with revision ${revision} and adapter ${adapter} READY`, (status) => {
      const found = status.adapters.find(({ name }) => name === adapter)
      return status.configRevision === revision && found?.state === AdapterState.READY
    })
  }

  /** Pings and waits for the Pong with the same nonce: the node lives and has read everything before it. */
  async pong(what: string, boundMs?: number): Promise<void> {
    const nonce = ++this.#nonce
    this.send({ case: "ping", value: { nonce } })
    await this.take(
      what,
      ({ body }) => (body.case === "pong" && body.value.nonce === nonce ? true : undefined),
      boundMs
    )
  }

  /** Gives the node a run. */
  run(
    request: Omit<MessageInitShape<typeof RunRequestSchema>, "$typeName"> & { readonly runId: string }
  ): EdgeRun {
    const handle = ++this.#lastHandle
    const run = new EdgeRun(this, request.runId, handle)
    this.runs.set(handle, run)
    this.send({ case: "runRequest", value: { attempt: 1, handle, stream: true, ...request } })
    return run
  }

  /** The run goes on over this link, under a new handle. */
  adopt(run: EdgeRun): number {
    const handle = ++this.#lastHandle
    run.peer = this
    run.handle = handle
    this.runs.set(handle, run)
    return handle
  }

  protected override handle({ body }: NodeFrame): boolean {
    const bytes = this.#sizes.shift() ?? 0
    if (body.case !== "runEvent") return false
    const run = this.runs.get(body.value.handle)
    if (run === undefined) this.strays.push(body.value)
    else run.came({ seq: body.value.seq, event: body.value.event, bytes })
    return true
  }
}
