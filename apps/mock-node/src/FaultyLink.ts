// Stands between the node and its connection and breaks the protocol's rules on demand. The SDK above it stays what
// it is: all faults are committed on whole frames.

import type { Dialer, NodeConnection } from "@iop/node-sdk/NodeConnection"
import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { type DecodedEdgeFrame, decodeEdgeFrame } from "@iop/platform-common/protocol/edgeFrameWire"
import { decodeNodeFrame, encodeNodeStatus } from "@iop/platform-common/protocol/nodeFrameWire"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { isTerminal } from "@iop/platform-common/protocol/RunEvent"
import { encodeRunEventFrame } from "@iop/platform-common/protocol/runEventWire"
import { Effect } from "effect"
import type { ArmedFault, Fault, ImmediateFault } from "./Fault.ts"
import { SeededRandom } from "./SeededRandom.ts"

/** A handle that no edge gives: the last of all. */
const UNKNOWN_HANDLE = 0xffff_ffff

type DataEvent = { readonly handle: number; readonly seq: number; readonly event: NodeRunEvent }

/** See the file's head. */
export class FaultyLink {
  readonly #random = new SeededRandom("faults")
  readonly #armed: Array<ArmedFault> = []
  readonly #runOf = new Map<number, string>()
  #connection: NodeConnection | undefined
  #dropIn = false
  #dropOut = false
  /** A frame that is sent after its successor. */
  #heldBack: { readonly handle: number; readonly frame: Uint8Array } | undefined

  /** Commits a fault now, or arms it for the next event that it can happen to. */
  commit(fault: Fault): void {
    switch (fault.fault) {
      case "freeze":
      case "drop_without_fin":
      case "cut":
      case "garbage":
      case "unknown_handle":
      case "foreign_event":
      case "status_flood":
        this.#commitNow(fault)
        return
      default:
        this.#armed.push(fault)
    }
  }

  /** Puts this between a node and its dialer. */
  readonly wrapDialer =
    (dialer: Dialer): Dialer =>
    (options) => {
      const connection = dialer({
        ...options,
        onFrames: (frames) => {
          const heard = this.#dropIn ? [] : frames.filter((frame) => this.#hears(frame))
          if (heard.length > 0) options.onFrames(heard)
        }
      })
      return Effect.map(connection, (dialled) => this.#wrap(dialled))
    }

  #wrap(connection: NodeConnection): NodeConnection {
    this.#connection = connection
    this.#dropIn = false
    this.#dropOut = false
    this.#heldBack = undefined
    this.#runOf.clear()
    return {
      send: (payload, lane) => {
        if (this.#dropOut) return
        if (lane === "control") connection.send(payload, lane)
        else this.#sendData(connection, payload)
      },
      setMaxFrameBytes: (bytes) => connection.setMaxFrameBytes(bytes),
      close: (message, flushMs) => connection.close(message, flushMs),
      destroy: (message) => connection.destroy(message)
    }
  }

  #commitNow(fault: ImmediateFault): void {
    const connection = this.#connection
    switch (fault.fault) {
      case "freeze":
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, fault.ms)
        return
      case "drop_without_fin":
        this.#dropIn = fault.direction !== "out"
        this.#dropOut = fault.direction !== "in"
        return
      case "cut":
        connection?.destroy("cut on purpose")
        return
      case "garbage":
        connection?.send(
          Uint8Array.from({ length: fault.bytes ?? 64 }, () => this.#random.between(0, 255)),
          "data"
        )
        return
      case "unknown_handle":
        for (let time = 0; time < (fault.times ?? 1); time++) this.#sendStray(UNKNOWN_HANDLE, time + 1)
        return
      case "foreign_event":
        for (let time = 0; time < (fault.times ?? 1); time++) this.#sendStray(fault.handle + time, 1)
        return
      case "status_flood":
        for (let time = 0; time < (fault.times ?? 10_000); time++) {
          connection?.send(
            encodeNodeStatus({
              adapters: [{ name: "flood", state: AdapterState.DEGRADED, reason: `report ${time}` }]
            }),
            "control"
          )
        }
    }
  }

  #sendStray(handle: number, seq: number): void {
    const event: NodeRunEvent = { type: "delta", kind: "text", choice: 0, text: "stray" }
    this.#connection?.send(encodeRunEventFrame(handle, seq, event), "data")
  }

  /** Whether the node gets to see a frame; remembers on the way which run has which handle. */
  #hears(bytes: Uint8Array): boolean {
    let frame: DecodedEdgeFrame
    try {
      frame = decodeEdgeFrame(bytes)
    } catch {
      // What the edge does wrong is for the node to say.
      return true
    }
    if (frame.kind === "run_request") {
      this.#runOf.set(frame.value.handle, frame.value.runId)
    } else if (frame.kind === "register_response" && frame.value.result.case === "accepted") {
      for (const { decision, runId } of frame.value.result.value.heldRuns) {
        if (decision.case === "resume") this.#runOf.set(decision.value.handle, runId)
      }
    } else if (frame.kind === "run_cancel") {
      return this.#take(frame.handle, (fault) => fault === "ignore_cancel") === undefined
    }
    return true
  }

  #sendData(connection: NodeConnection, payload: Uint8Array): void {
    const decoded =
      this.#armed.length > 0 || this.#heldBack !== undefined ? decodeNodeFrame(payload) : undefined
    if (decoded === undefined || decoded.kind !== "run_event") {
      connection.send(payload, "data")
      return
    }
    const frames = this.#distort(payload, decoded)
    for (const frame of frames) connection.send(frame, "data")
  }

  #distort(payload: Uint8Array, data: DataEvent): ReadonlyArray<Uint8Array> {
    const { event, handle, seq } = data
    const held = this.#heldBack
    if (held !== undefined && held.handle === handle) {
      this.#heldBack = undefined
      return [payload, held.frame]
    }
    const fault = this.#take(handle, (name) => {
      switch (name) {
        case "after_terminal":
          return isTerminal(event)
        case "started_twice":
          return event.type === "started"
        case "ignore_cancel":
          return false
        default:
          return event.type === "delta"
      }
    })
    switch (fault?.fault) {
      case "duplicate_event":
        return [payload, payload]
      case "changed_event":
        return [
          payload,
          encodeRunEventFrame(handle, seq, { type: "delta", kind: "text", choice: 0, text: "changed" })
        ]
      case "out_of_order":
        this.#heldBack = { handle, frame: payload }
        return []
      case "gap":
        return []
      case "started_twice":
      case "after_terminal":
        return [
          payload,
          encodeRunEventFrame(
            handle,
            seq + 1,
            fault.fault === "started_twice"
              ? { type: "started" }
              : { type: "delta", kind: "text", choice: 0, text: "after the end" }
          )
        ]
      default:
        return [payload]
    }
  }

  /** The first armed fault for the handle's run that fits; it is disarmed. */
  #take(handle: number, fits: (name: ArmedFault["fault"]) => boolean): ArmedFault | undefined {
    const index = this.#armed.findIndex(
      ({ fault, run }) => fits(fault) && (run === undefined || run === this.#runOf.get(handle))
    )
    return index < 0 ? undefined : this.#armed.splice(index, 1)[0]
  }
}
