// A node by hand over a socket: frames as a test wants them, right or wrong. It shares no code with the edge or the
// node SDK; only the generated messages, which come from the specification itself.
import { randomBytes } from "node:crypto"
import { connect, type Socket } from "node:net"
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { type EdgeFrame, EdgeFrameSchema, NodeFrameSchema } from "@iop/platform-common/gen/iop/v1/frame_pb"
import type {
  HeldRunSchema,
  RegisterAccepted,
  RegisterRequestSchema,
  RegisterResponse
} from "@iop/platform-common/gen/iop/v1/register_pb"
import { AdapterState, type NodeStatusSchema } from "@iop/platform-common/gen/iop/v1/status_pb"
import type { Address } from "./RawHttp.ts"
import { RawRun } from "./RawRun.ts"
import { within } from "./waiting.ts"

export type NodeBody = NonNullable<MessageInitShape<typeof NodeFrameSchema>["body"]>
type EdgeCase = NonNullable<EdgeFrame["body"]["case"]>
type EdgeValue<Case extends EdgeCase> = Extract<EdgeFrame["body"], { case: Case }>["value"]

export interface RegisterOptions {
  readonly token: string
  readonly bootId?: Uint8Array
  readonly heldRuns?: ReadonlyArray<MessageInitShape<typeof HeldRunSchema>>
  /** Adapter name → targets that it offers, reported as ready after registration; absent: no status is sent. */
  readonly offers?: Readonly<Record<string, ReadonlyArray<string>>>
  readonly agentName?: string
  /** 1.0 unless given. */
  readonly version?: { readonly major: number; readonly minor: number }
}

/** How a link ended. */
export interface LinkEnd {
  /** Whether it was reset instead of ended in order. */
  readonly reset: boolean
  /** Milliseconds since it was opened. */
  readonly ms: number
}

/** A payload with its length before it. */
export const frameOf = (payload: Uint8Array): Buffer => {
  const header = Buffer.alloc(4)
  header.writeUInt32BE(payload.length)
  return Buffer.concat([header, payload])
}

/** A frame with this body, as it is on the wire. */
export const nodeFrame = (body: NodeBody): Buffer =>
  frameOf(toBinary(NodeFrameSchema, create(NodeFrameSchema, { body })))

/** The body of a first frame. */
export const registerBody = (options: RegisterOptions): NodeBody => ({
  case: "registerRequest",
  value: {
    protocolVersion: options.version ?? { major: 1, minor: 0 },
    token: options.token,
    bootId: options.bootId ?? randomBytes(16),
    agentName: options.agentName ?? "raw-node",
    agentVersion: "1.0.0",
    adapterKinds: ["mock"],
    heldRuns: [...(options.heldRuns ?? [])]
  } satisfies MessageInitShape<typeof RegisterRequestSchema>
})

interface Waiter {
  readonly matches: (frame: EdgeFrame) => boolean
  readonly resolve: (frame: EdgeFrame) => void
  readonly reject: (error: Error) => void
}

export class RawNode {
  readonly socket: Socket
  /** Every frame that came, in order. */
  readonly received: Array<EdgeFrame> = []
  readonly closed: Promise<LinkEnd>
  /** Whether pings are answered at once. */
  answersPings = true
  pings = 0
  /** The boot id that it last registered with. */
  bootId: Uint8Array = Buffer.alloc(0)
  /** What the edge said when it accepted this node. */
  accepted: RegisterAccepted | undefined
  /** Called with each run that the edge sends; without it runs wait for `nextRun`. */
  onRun: ((run: RawRun) => void) | undefined
  readonly runs = new Map<number, RawRun>()
  readonly #untaken: Array<EdgeFrame> = []
  readonly #untakenRuns: Array<RawRun> = []
  readonly #runWaiters: Array<(run: RawRun) => void> = []
  readonly #waiters: Array<Waiter> = []
  #buffer: Buffer = Buffer.alloc(0)
  #end: LinkEnd | undefined
  readonly #localPort: number

  private constructor(socket: Socket) {
    this.socket = socket
    this.#localPort = socket.localPort ?? 0
    const openedAt = performance.now()
    let reset = false
    socket.on("data", (chunk: Buffer) => this.#onData(chunk))
    socket.on("error", () => {
      reset = true
    })
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#end = { reset, ms: performance.now() - openedAt }
        for (const waiter of this.#waiters.splice(0)) waiter.reject(new Error("the edge ended the link"))
        resolve(this.#end)
      })
    })
  }

  /** Connects and says nothing. */
  static async connect(cleanup: AsyncDisposableStack, address: Address): Promise<RawNode> {
    const socket = connect({ ...address, noDelay: true })
    cleanup.defer(() => {
      socket.destroy()
    })
    await within(
      `a connection to ${address.host}:${address.port}`,
      new Promise<void>((resolve, reject) => {
        socket.once("connect", resolve)
        socket.once("error", reject)
      })
    )
    return new RawNode(socket)
  }

  /** Connects and registers; fails unless the edge accepts. */
  static async register(
    cleanup: AsyncDisposableStack,
    address: Address,
    options: RegisterOptions
  ): Promise<RawNode> {
    const node = await RawNode.connect(cleanup, address)
    const { result } = await node.handshake(options)
    if (result.case !== "accepted") throw new Error(`the edge refused: ${JSON.stringify(result.value)}`)
    if (options.offers !== undefined) node.status(options.offers)
    return node
  }

  /** The port of this end; kept after the link is over. */
  get localPort(): number {
    return this.#localPort
  }

  get end(): LinkEnd | undefined {
    return this.#end
  }

  /** Sends the RegisterRequest and waits for the answer, whatever it is. */
  async handshake(options: RegisterOptions): Promise<RegisterResponse> {
    this.bootId = options.bootId ?? randomBytes(16)
    this.send(registerBody({ ...options, bootId: this.bootId }))
    const response = await this.take("registerResponse")
    if (response.result.case === "accepted") this.accepted = response.result.value
    return response
  }

  send(...bodies: ReadonlyArray<NodeBody>): void {
    this.sendBytes(Buffer.concat(bodies.map(nodeFrame)))
  }

  sendBytes(bytes: Uint8Array): void {
    if (!this.socket.destroyed) this.socket.write(bytes)
  }

  /** Reports adapters as ready with these targets, or as something else. */
  status(
    offers: Readonly<Record<string, ReadonlyArray<string>>>,
    change: {
      readonly revision?: string
      readonly state?: AdapterState
      readonly reason?: string
    } = {}
  ): void {
    const value: MessageInitShape<typeof NodeStatusSchema> = {
      configRevision: change.revision ?? this.accepted?.config?.revision ?? "",
      adapters: Object.entries(offers).map(([name, targets]) => ({
        name,
        state: change.state ?? AdapterState.READY,
        reason: change.reason ?? "",
        slots: this.accepted?.config?.adapters.find((adapter) => adapter.name === name)?.slots ?? 1,
        targets: targets.map((target) => ({ name: target, capabilities: ["chat", "completion"] }))
      }))
    }
    this.send({ case: "nodeStatus", value })
  }

  /** The first frame of the kind that was not taken yet, now or when it comes. */
  async take<Case extends EdgeCase>(
    kind: Case,
    where: (value: EdgeValue<Case>) => boolean = () => true,
    boundMs?: number
  ): Promise<EdgeValue<Case>> {
    const matches = (frame: EdgeFrame) =>
      frame.body.case === kind && where(frame.body.value as EdgeValue<Case>)
    const at = this.#untaken.findIndex(matches)
    if (at !== -1) return this.#untaken.splice(at, 1)[0]!.body.value as EdgeValue<Case>
    if (this.#end !== undefined) throw new Error(`the link ended without ${kind}`)
    const frame = await within(
      `a ${kind} frame`,
      new Promise<EdgeFrame>((resolve, reject) => this.#waiters.push({ matches, resolve, reject })),
      boundMs
    )
    return frame.body.value as EdgeValue<Case>
  }

  /** The next run that the edge sends, when `onRun` does not take them. */
  async nextRun(boundMs?: number): Promise<RawRun> {
    const waiting = this.#untakenRuns.shift()
    if (waiting !== undefined) return waiting
    return within("a run", new Promise<RawRun>((resolve) => this.#runWaiters.push(resolve)), boundMs)
  }

  /** The run under the handle of a new link, going on after the given seq. */
  resumeRun(run: RawRun, handle: number, afterSeq: number): void {
    this.runs.set(handle, run)
    run.resume(this, handle, afterSeq)
  }

  /** Frames of the kind that have come so far. */
  count(kind: EdgeCase): number {
    return this.received.filter((frame) => frame.body.case === kind).length
  }

  /** Ends the link in order. */
  close(): void {
    this.socket.end()
  }

  /** Cuts the link with an RST. */
  reset(): void {
    this.socket.resetAndDestroy()
  }

  #onData(chunk: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk])
    while (this.#buffer.length >= 4) {
      const end = 4 + this.#buffer.readUInt32BE(0)
      if (this.#buffer.length < end) return
      const frame = fromBinary(EdgeFrameSchema, this.#buffer.subarray(4, end))
      this.#buffer = this.#buffer.subarray(end)
      this.#onFrame(frame)
    }
  }

  #onFrame(frame: EdgeFrame): void {
    this.received.push(frame)
    const { body } = frame
    if (body.case === "ping") {
      this.pings += 1
      if (this.answersPings) this.send({ case: "pong", value: { nonce: body.value.nonce } })
      return
    }
    if (body.case === "runRequest") {
      const run = new RawRun(this, body.value, this.accepted?.limits?.runWindowBytes ?? 256 * 1024)
      this.runs.set(body.value.handle, run)
      if (this.onRun !== undefined) this.onRun(run)
      else {
        const waiter = this.#runWaiters.shift()
        if (waiter === undefined) this.#untakenRuns.push(run)
        else waiter(run)
      }
    }
    if (body.case === "runAck") this.runs.get(body.value.handle)?.acknowledged(body.value.seq)
    if (body.case === "runCancel") this.runs.get(body.value.handle)?.wasCancelled(body.value)
    const at = this.#waiters.findIndex((waiter) => waiter.matches(frame))
    if (at === -1) this.#untaken.push(frame)
    else this.#waiters.splice(at, 1)[0]!.resolve(frame)
  }
}
