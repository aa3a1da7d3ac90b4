// The nodes of the relay benchmark: the least that speaks the protocol, so that the edge is what is measured. Its
// target `flood` sends as fast as the window lets it; `paced` sends one event each 50 ms, stamped with the machine's
// monotonic clock; `quiet` starts and says nothing more.

import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { decodeEdgeFrame } from "@iop/platform-common/protocol/edgeFrameWire"
import {
  encodeNodeStatus,
  encodePong,
  encodeRegisterRequest
} from "@iop/platform-common/protocol/nodeFrameWire"
import { encodeRunEventFrame } from "@iop/platform-common/protocol/runEventWire"
import { PROTOCOL_VERSION } from "@iop/platform-common/protocol/version"
import { dialFrames } from "@iop/proto-socket/dialFrames"
import type { FrameConnection } from "@iop/proto-socket/FrameConnection"
import { Effect } from "effect"

/** Tokens are `prefix` and a number: so many nodes, from `first` on. */
const [port = "0", prefix = "", first = "0", count = "1", paceMs = "50"] = process.argv.slice(2)
const WINDOW_BYTES = 256 * 1024
const PER_TURN = 64

interface Running {
  readonly handle: number
  readonly target: string
  readonly connection: FrameConnection
  seq: number
  /** Bytes sent up to each seq, modulo the window's worth of events. */
  sentBytes: number
  ackedBytes: number
  readonly sizes: Array<number>
  ackedSeq: number
}

/** By handle: handles of two links may be the same, but only one node of a process is given runs. */
const running = new Map<number, Running>()

const send = (connection: FrameConnection, run: Running, frame: Uint8Array) => {
  run.sizes.push(frame.length)
  run.sentBytes += frame.length
  connection.send(frame, "data")
}

const delta = (run: Running, text: string) => {
  run.seq += 1
  return encodeRunEventFrame(run.handle, run.seq, { type: "delta", choice: 0, kind: "text", text })
}

const flood = (connection: FrameConnection, run: Running) => {
  if (!running.has(run.handle)) return
  for (let i = 0; i < PER_TURN && run.sentBytes - run.ackedBytes < WINDOW_BYTES - 100; i++) {
    send(connection, run, delta(run, "hello"))
  }
  setImmediate(flood, connection, run)
}

const join = async (token: string) => {
  const connection = await Effect.runPromise(
    dialFrames({
      host: "127.0.0.1",
      port: Number(port),
      maxFrameBytes: 32 << 20,
      writeDeadlineMs: 30_000,
      onClose: () => process.exit(0),
      onFrames: (frames, connection) => {
        for (const bytes of frames) {
          const frame = decodeEdgeFrame(bytes)
          switch (frame.kind) {
            case "register_response": {
              if (frame.value.result.case !== "accepted") throw new Error("not accepted")
              const { config } = frame.value.result.value
              const status = {
                configRevision: config?.revision ?? "",
                adapters: [
                  {
                    name: "mock",
                    state: AdapterState.READY,
                    targets: [{ name: "flood" }, { name: "paced" }, { name: "quiet" }]
                  }
                ]
              }
              connection.send(encodeNodeStatus(status), "control")
              break
            }
            case "ping":
              connection.send(encodePong(frame.nonce), "control")
              break
            case "run_request": {
              const { handle, target } = frame.value
              const run: Running = {
                connection,
                handle,
                target,
                seq: 1,
                sentBytes: 0,
                ackedBytes: 0,
                sizes: [],
                ackedSeq: 0
              }
              running.set(handle, run)
              send(connection, run, encodeRunEventFrame(handle, 1, { type: "started" }))
              if (target === "flood") {
                flood(connection, run)
              }
              break
            }
            case "run_ack": {
              const run = running.get(frame.handle)
              if (run === undefined) break
              const many = frame.seq - run.ackedSeq
              for (const size of run.sizes.splice(0, many)) run.ackedBytes += size
              run.ackedSeq = frame.seq
              break
            }
            case "run_cancel": {
              const run = running.get(frame.handle)
              if (run === undefined) break
              running.delete(frame.handle)
              run.seq += 1
              connection.send(
                encodeRunEventFrame(run.handle, run.seq, { type: "cancelled", reason: "" }),
                "data"
              )
              break
            }
          }
        }
      }
    })
  )
  connection.send(
    encodeRegisterRequest({
      protocolVersion: PROTOCOL_VERSION,
      token,
      bootId: crypto.getRandomValues(new Uint8Array(16)),
      agentName: "bench",
      agentVersion: "1"
    }),
    "control"
  )
}

for (let i = 0; i < Number(count); i++) await join(`${prefix}${Number(first) + i}`)

// Runs speak at their own moments, spread over the interval, as chats do.
let turn = 0
const SLICES = 25
setInterval(() => {
  turn = (turn + 1) % SLICES
  for (const run of running.values()) {
    if (run.target !== "paced" || run.handle % SLICES !== turn) continue
    if (run.sentBytes - run.ackedBytes > WINDOW_BYTES - 100) continue
    send(run.connection, run, delta(run, process.hrtime.bigint().toString()))
  }
}, Number(paceMs) / SLICES)
process.on("disconnect", () => process.exit(0))
