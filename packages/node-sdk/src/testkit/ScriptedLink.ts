// One connection of a node as the scripted edge sees it: what came is waited for by kind, what goes is one call.

import type { MessageInitShape } from "@bufbuild/protobuf"
import { create } from "@bufbuild/protobuf"
import type { Goodbye, GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import {
  type NodeConfigPayload,
  NodeConfigPayloadSchema
} from "@iop/platform-common/gen/iop/v1/node_config_pb"
import type {
  HeldRunDecisionSchema,
  RegisterRejectedSchema,
  RegisterRequest
} from "@iop/platform-common/gen/iop/v1/register_pb"
import type { RunInput } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import { CancelCode } from "@iop/platform-common/gen/iop/v1/run_pb"
import { AdapterState, type NodeStatus } from "@iop/platform-common/gen/iop/v1/status_pb"
import {
  encodeAck,
  encodeCancel,
  encodeDrain,
  encodeGoodbye,
  encodePing,
  encodeRegisterAccepted,
  encodeRegisterRejected,
  encodeRunRequest
} from "@iop/platform-common/protocol/edgeFrameWire"
import { decodeNodeFrame } from "@iop/platform-common/protocol/nodeFrameWire"
import { promptInput } from "@iop/platform-common/protocol/runInputText"
import { PROTOCOL_VERSION } from "@iop/platform-common/protocol/version"
import { Deferred, Effect, Queue } from "effect"
import { ScriptedRun, type ScriptedRunIdentity } from "./ScriptedRun.ts"

/** How a link reaches the node. */
export interface ScriptedWire {
  readonly send: (frame: Uint8Array) => void
  /** Cuts the connection without a word. */
  readonly cut: () => void
}

/** A configuration with one adapter, as tests need it most. */
export type ScriptedConfig = MessageInitShape<typeof NodeConfigPayloadSchema>

/** What a run is made of; what is left out has a default. */
export interface ScriptedRunFields extends Partial<ScriptedRunIdentity> {
  readonly adapter: string
  readonly target: string
  /** A text stands for a prompt. */
  readonly input?: RunInput | string
  /** Default true. */
  readonly stream?: boolean
  /** Whether events are acknowledged as they come. Default true. */
  readonly autoAck?: boolean
  readonly deadlineMs?: number
  readonly session?: string
}

/** See the file's head. */
export class ScriptedLink {
  /** Handles of events that belong to no run of this link. */
  readonly strayEvents: Array<number> = []
  readonly #wire: ScriptedWire
  readonly #requests = Effect.runSync(Queue.unbounded<RegisterRequest>())
  readonly #statuses = Effect.runSync(Queue.unbounded<NodeStatus>())
  readonly #pongs = Effect.runSync(Queue.unbounded<number>())
  readonly #goodbyes = Effect.runSync(Queue.unbounded<Goodbye>())
  readonly #closed = Deferred.makeUnsafe<void>()
  readonly #runs = new Map<number, ScriptedRun>()
  #lastHandle = 0
  #lastNonce = 0

  constructor(wire: ScriptedWire) {
    this.#wire = wire
  }

  /** The node's next RegisterRequest. */
  get registerRequest(): Effect.Effect<RegisterRequest> {
    return Queue.take(this.#requests)
  }

  /** The node's next NodeStatus. */
  get status(): Effect.Effect<NodeStatus> {
    return Queue.take(this.#statuses)
  }

  /** The first NodeStatus from now on in which every adapter is ready. */
  get ready(): Effect.Effect<NodeStatus> {
    return this.statusWhere((status) => status.adapters.every(({ state }) => state === AdapterState.READY))
  }

  /** The node's goodbye. */
  get goodbye(): Effect.Effect<Goodbye> {
    return Queue.take(this.#goodbyes)
  }

  /** Whether a goodbye came that was not taken. */
  get saidGoodbye(): Effect.Effect<boolean> {
    return Effect.map(Queue.size(this.#goodbyes), (size) => size > 0)
  }

  /** Waits until the connection is gone. */
  get closed(): Effect.Effect<void> {
    return Deferred.await(this.#closed)
  }

  /** The first NodeStatus from now on that fits. */
  statusWhere(fits: (status: NodeStatus) => boolean): Effect.Effect<NodeStatus> {
    return Effect.repeat(this.status, { until: fits })
  }

  /**
   * Waits for the RegisterRequest and accepts it: with the configuration, and with the runs that are to go on from
   * their last event. Held runs that are not among them get no decision, unless `decisions` says one.
   */
  accept(
    options: {
      readonly config?: ScriptedConfig
      readonly resume?: ReadonlyArray<ScriptedRun>
      readonly decisions?: ReadonlyArray<MessageInitShape<typeof HeldRunDecisionSchema>>
      readonly edgeId?: string
      /** Default 5,000 and 3. */
      readonly heartbeatIntervalMs?: number
      readonly heartbeatDeadAfter?: number
      /** Default 1 MiB. */
      readonly maxNodeFrameBytes?: number
      /** Default 256 KiB. */
      readonly runWindowBytes?: number
    } = {}
  ): Effect.Effect<RegisterRequest> {
    return Effect.map(this.registerRequest, (request) => {
      const resumed = (options.resume ?? []).map((run) => {
        const handle = ++this.#lastHandle
        run.move(handle, (of, seq) => this.#wire.send(encodeAck(of, seq)))
        this.#runs.set(handle, run)
        return {
          runId: run.runId,
          attempt: run.attempt,
          decision: { case: "resume" as const, value: { afterSeq: run.lastSeq, handle } }
        }
      })
      this.#wire.send(
        encodeRegisterAccepted({
          nodeId: "scripted-node",
          alias: "scripted",
          edgeId: options.edgeId ?? "scripted-edge",
          linkEpoch: 1n,
          protocolVersion: PROTOCOL_VERSION,
          config: configPayload(options.config),
          heartbeatIntervalMs: options.heartbeatIntervalMs ?? 5_000,
          heartbeatSuspectAfter: 2,
          heartbeatDeadAfter: options.heartbeatDeadAfter ?? 3,
          limits: {
            maxNodeFrameBytes: options.maxNodeFrameBytes ?? 1024 * 1024,
            maxEdgeFrameBytes: 32 * 1024 * 1024,
            runWindowBytes: options.runWindowBytes ?? 256 * 1024
          },
          heldRuns: [...resumed, ...(options.decisions ?? [])]
        })
      )
      return request
    })
  }

  /** Waits for the RegisterRequest and refuses it. */
  reject(rejected: MessageInitShape<typeof RegisterRejectedSchema>): Effect.Effect<RegisterRequest> {
    return Effect.map(this.registerRequest, (request) => {
      this.#wire.send(encodeRegisterRejected(rejected))
      return request
    })
  }

  /** Gives the node a run. */
  run(fields: ScriptedRunFields): ScriptedRun {
    const handle = ++this.#lastHandle
    const identity = { runId: fields.runId ?? `run-${handle}`, attempt: fields.attempt ?? 1 }
    const run = new ScriptedRun(identity, handle, fields.autoAck ?? true, (of, seq) =>
      this.#wire.send(encodeAck(of, seq))
    )
    this.#runs.set(handle, run)
    const { input = "" } = fields
    this.#wire.send(
      encodeRunRequest({
        ...identity,
        handle,
        adapter: fields.adapter,
        target: fields.target,
        input: typeof input === "string" ? promptInput(input) : input,
        stream: fields.stream ?? true,
        session: fields.session ?? "",
        deadlineMs: fields.deadlineMs ?? 0,
        traceparent: ""
      })
    )
    return run
  }

  /** Cancels a run. */
  cancel(run: ScriptedRun, reason = "cancelled by the test"): void {
    this.#wire.send(encodeCancel(run.handle, CancelCode.CALLER, reason))
  }

  /** Pings and waits for the pong to it. */
  get ping(): Effect.Effect<number> {
    return Effect.suspend(() => {
      const nonce = ++this.#lastNonce
      this.#wire.send(encodePing(nonce))
      return Effect.repeat(Queue.take(this.#pongs), { until: (answered) => answered === nonce })
    })
  }

  /** Asks the node to finish. */
  drain(timeoutMs: number, reason = "drained by the test"): void {
    this.#wire.send(encodeDrain(timeoutMs, reason))
  }

  /** The edge's last word, then the connection ends. */
  sayGoodbye(code: GoodbyeCode, message: string): void {
    this.#wire.send(encodeGoodbye(code, message))
  }

  /** Sends any bytes as a frame. */
  sendRaw(frame: Uint8Array): void {
    this.#wire.send(frame)
  }

  /** Cuts the connection. */
  cut(): void {
    this.#wire.cut()
  }

  /** Takes frames of the node; for the edge. */
  onFrames(frames: ReadonlyArray<Uint8Array>): void {
    for (const bytes of frames) {
      const frame = decodeNodeFrame(bytes)
      switch (frame.kind) {
        case "run_event": {
          const run = this.#runs.get(frame.handle)
          if (run === undefined) this.strayEvents.push(frame.handle)
          else run.accept(frame.seq, frame.event, bytes.length)
          break
        }
        case "register_request":
          Queue.offerUnsafe(this.#requests, frame.value)
          break
        case "node_status":
          Queue.offerUnsafe(this.#statuses, frame.value)
          break
        case "pong":
          Queue.offerUnsafe(this.#pongs, frame.nonce)
          break
        case "goodbye":
          Queue.offerUnsafe(this.#goodbyes, frame.value)
          break
        default:
          throw new Error(`the node sent a frame of kind ${frame.kind}`)
      }
    }
  }

  /** The connection is gone; for the edge. */
  onClose(): void {
    Deferred.doneUnsafe(this.#closed, Effect.void)
  }
}

const configPayload = (config: ScriptedConfig | undefined): NodeConfigPayload =>
  create(NodeConfigPayloadSchema, { revision: "r1", ...config })
