// The kit as a node: one link to the edge that is judged, with the runs that the edge sends over it.
import type { Socket } from "node:net"
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { type EdgeFrame, EdgeFrameSchema, NodeFrameSchema } from "@iop/platform-common/gen/iop/v1/frame_pb"
import type {
  RegisterAccepted,
  RegisterRequestSchema,
  RegisterResponse
} from "@iop/platform-common/gen/iop/v1/register_pb"
import { FinishReason, type RunEventSchema } from "@iop/platform-common/gen/iop/v1/run_event_pb"
import type { RunRequest } from "@iop/platform-common/gen/iop/v1/run_pb"
import { AdapterState, type NodeStatusSchema } from "@iop/platform-common/gen/iop/v1/status_pb"
import { frameOf } from "./framing.ts"
import { Peer } from "./Peer.ts"

/** A body that a node may send. */
export type NodeBody = NonNullable<MessageInitShape<typeof NodeFrameSchema>["body"]>
type EdgeCase = NonNullable<EdgeFrame["body"]["case"]>
/** The message of a body that the edge sends. */
export type EdgeValue<Case extends EdgeCase> = Extract<EdgeFrame["body"], { case: Case }>["value"]
/** An event of a run. */
export type RunEventInit = NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>

/** The bytes of a NodeFrame, without a length. */
export const nodePayload = (body: NodeBody): Uint8Array =>
  toBinary(NodeFrameSchema, create(NodeFrameSchema, { body }))

/** The bytes of a NodeFrame, with its length. */
export const nodeFrame = (body: NodeBody): Buffer => frameOf(nodePayload(body))

/** A text delta. */
export const text = (value: string): RunEventInit => ({
  case: "delta",
  value: { content: { case: "text", value } }
})
export const started: RunEventInit = { case: "started", value: {} }
export const completed: RunEventInit = { case: "completed", value: { finishReason: FinishReason.STOP } }

/** A run at this node. Numbers its events; sends what it is told, window or not. */
export class NodeRun {
  readonly request: RunRequest
  handle: number
  lastSeq = 0
  peer: NodePeer

  constructor(peer: NodePeer, request: RunRequest) {
    this.peer = peer
    this.request = request
    this.handle = request.handle
  }

  /** Sends events with the next numbers, all in one write. */
  send(...events: ReadonlyArray<RunEventInit>): void {
    this.peer.sendBytes(Buffer.concat(events.map((event) => this.#frame(++this.lastSeq, event))))
  }

  /** Sends one event with this number. */
  sendAs(seq: number, event: RunEventInit): void {
    this.lastSeq = Math.max(this.lastSeq, seq)
    this.peer.sendBytes(this.#frame(seq, event))
  }

  /** Waits for an acknowledgement of at least this event. */
  async acknowledged(seq: number, boundMs?: number): Promise<number> {
    return this.peer.take(
      `an acknowledgement of event ${seq} of handle ${this.handle}`,
      ({ body }) =>
        body.case === "runAck" && body.value.handle === this.handle && body.value.seq >= seq
          ? body.value.seq
          : undefined,
      boundMs
    )
  }

  /** Waits for the RunCancel. */
  async cancelled(boundMs?: number): Promise<EdgeValue<"runCancel">> {
    return this.peer.take(
      `a RunCancel for handle ${this.handle}`,
      ({ body }) => (body.case === "runCancel" && body.value.handle === this.handle ? body.value : undefined),
      boundMs
    )
  }

  /** RunCancels for this run so far. */
  get cancels(): number {
    return this.peer.received.filter(
      ({ body }) => body.case === "runCancel" && body.value.handle === this.handle
    ).length
  }

  #frame(seq: number, event: RunEventInit): Buffer {
    return nodeFrame({ case: "runEvent", value: { handle: this.handle, seq, event } })
  }
}

/** A link of the kit to an edge. */
export class NodePeer extends Peer<EdgeFrame> {
  /** Whether pings are answered at once. */
  answersPings = true
  accepted: RegisterAccepted | undefined
  /** Milliseconds of the monotonic clock at each ping. */
  readonly pings: Array<number> = []

  constructor(socket: Socket, patienceMs: number) {
    super(socket, (payload) => fromBinary(EdgeFrameSchema, payload), patienceMs)
  }

  /** Sends bodies, in one write. */
  send(...bodies: ReadonlyArray<NodeBody>): void {
    this.sendBytes(Buffer.concat(bodies.map(nodeFrame)))
  }

  /** Sends the request and waits for the answer, whatever it is. */
  async handshake(request: MessageInitShape<typeof RegisterRequestSchema>): Promise<RegisterResponse> {
    this.send({ case: "registerRequest", value: request })
    return this.response()
  }

  /** The answer to a RegisterRequest. Generous: the edge may be probing another link. */
  async response(): Promise<RegisterResponse> {
    const response = await this.next("registerResponse", "a RegisterResponse", this.patienceMs + 5000)
    if (response.result.case === "accepted") this.accepted = response.result.value
    return response
  }

  /** The next frame of the kind that was not taken yet. */
  async next<Case extends EdgeCase>(kind: Case, what: string, boundMs?: number): Promise<EdgeValue<Case>> {
    return this.take(
      what,
      ({ body }) => (body.case === kind ? (body.value as EdgeValue<Case>) : undefined),
      boundMs
    )
  }

  /** Reports adapters as ready with these targets, with the revision that came, or as something else. */
  status(
    offers: Readonly<Record<string, ReadonlyArray<string>>>,
    change: MessageInitShape<typeof NodeStatusSchema> & {
      readonly state?: AdapterState
      readonly reason?: string
    } = {}
  ): void {
    const { state = AdapterState.READY, reason = "", ...rest } = change
    this.send({
      case: "nodeStatus",
      value: {
        configRevision: this.accepted?.config?.revision ?? "",
        adapters: Object.entries(offers).map(([name, targets]) => ({
          name,
          state,
          reason,
          slots: 1,
          targets: targets.map((target) => ({ name: target, capabilities: ["chat", "completion"] }))
        })),
        ...rest
      }
    })
  }

  /** The run with this id, when the edge sends it. */
  async run(runId: string, boundMs?: number): Promise<NodeRun> {
    const request = await this.take(
      `a RunRequest for run ${runId}`,
      ({ body }) => (body.case === "runRequest" && body.value.runId === runId ? body.value : undefined),
      boundMs
    )
    return new NodeRun(this, request)
  }

  protected override handle({ body }: EdgeFrame): boolean {
    if (body.case !== "ping") return false
    this.pings.push(performance.now())
    if (this.answersPings) this.send({ case: "pong", value: { nonce: body.value.nonce } })
    return false
  }
}
