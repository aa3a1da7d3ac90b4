// Four ways to carry the same small events from one process to another: ours, gRPC, WebSocket, and a floor of bare
// sockets with the least that can be written by hand.
import { connect, createServer as createTcpServer } from "node:net"
import * as grpc from "@grpc/grpc-js"
import { decodeNodeFrame } from "@iop/platform-common/protocol/nodeFrameWire"
import { encodeRunEventFrame } from "@iop/platform-common/protocol/runEventWire"
import { dialFrames } from "@iop/proto-socket/dialFrames"
import { listenFrames } from "@iop/proto-socket/FrameListener"
import { Effect, Scope } from "effect"
import { WebSocket, WebSocketServer } from "ws"

/** Sends one event; `flush` ends a turn and calls back when the next one may begin. */
export interface Sender {
  readonly event: (seq: number) => void
  readonly flush: (next: () => void) => void
}

/** The two sides of the leg. A side that listens returns its port, the other one dials it. */
export interface Carrier {
  /** As a node does, the sender dials, except where the comparison wants it otherwise. */
  readonly listens: "receive" | "send"
  /** Calls `onEvent` for each event. */
  readonly receive: (onEvent: () => void, port: number) => Promise<number>
  /** Calls `start` once there is somebody to send to. */
  readonly send: (port: number, start: (sender: Sender) => void) => Promise<number>
}

/** Bytes that may wait in a sender before it stops for the receiver. */
const HIGH_WATER = 1 << 20
const MAX_FRAME = 1 << 20
const DEADLINE_MS = 30_000

const event = (seq: number) =>
  encodeRunEventFrame(7, seq, { type: "delta", choice: 0, kind: "text", text: "hello" })

const ours: Carrier = {
  listens: "receive",
  receive: async (onEvent) => {
    const scope = Effect.runSync(Scope.make())
    const listener = await Effect.runPromise(
      listenFrames({
        host: "127.0.0.1",
        port: 0,
        onConnection: (socket) =>
          socket.open({
            maxFrameBytes: MAX_FRAME,
            writeDeadlineMs: DEADLINE_MS,
            onClose: () => {},
            onFrames: (frames) => {
              for (const frame of frames) if (decodeNodeFrame(frame).kind === "run_event") onEvent()
            }
          })
      }).pipe(Effect.provideService(Scope.Scope, scope))
    )
    return listener.address.port
  },
  send: async (port, start) => {
    const connection = await Effect.runPromise(
      dialFrames({
        host: "127.0.0.1",
        port,
        maxFrameBytes: MAX_FRAME,
        writeDeadlineMs: DEADLINE_MS,
        onFrames: () => {},
        onClose: () => {}
      })
    )
    const go = (next: () => void) => {
      if (connection.queuedBytes > HIGH_WATER) setImmediate(go, next)
      else next()
    }
    start({ event: (seq) => connection.send(event(seq), "data"), flush: (next) => setImmediate(go, next) })
    return port
  }
}

const service = {
  events: {
    path: "/bench.Events/Stream",
    requestStream: false,
    responseStream: true,
    requestSerialize: (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
    responseDeserialize: (bytes: Buffer) => bytes
  }
} satisfies grpc.ServiceDefinition

const grpcJs: Carrier = {
  listens: "send",
  receive: async (onEvent, port) => {
    const Client = grpc.makeGenericClientConstructor(service, "Events")
    const client = new Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
    const call = client.makeServerStreamRequest(
      service.events.path,
      service.events.requestSerialize,
      service.events.responseDeserialize,
      new Uint8Array(0)
    )
    call.on("error", () => {})
    call.on("data", (bytes: Buffer) => {
      if (decodeNodeFrame(bytes).kind === "run_event") onEvent()
    })
    return 0
  },
  send: (_port, start) =>
    new Promise((resolve, reject) => {
      const server = new grpc.Server()
      server.addService(service, {
        events: (call: grpc.ServerWritableStream<Buffer, Uint8Array>) => {
          call.on("error", () => {})
          let full = false
          start({
            event: (seq) => {
              // A copy: the stream keeps what it is given, the encoder reuses its memory.
              full = !call.write(event(seq).slice())
            },
            flush: (next) => {
              if (full) call.once("drain", () => setImmediate(next))
              else setImmediate(next)
            }
          })
        }
      })
      server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error)
      )
    })
}

const webSocket: Carrier = {
  listens: "receive",
  receive: (onEvent) =>
    new Promise((resolve) => {
      const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false }, () => {
        const address = server.address()
        resolve(typeof address === "object" && address !== null ? address.port : 0)
      })
      server.on("connection", (socket) => {
        socket.on("error", () => {})
        socket.on("message", (bytes: Buffer) => {
          if (decodeNodeFrame(bytes).kind === "run_event") onEvent()
        })
      })
    }),
  send: async (port, start) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
    await new Promise((resolve) => socket.once("open", resolve))
    socket.on("error", () => {})
    const go = (next: () => void) => {
      if (socket.bufferedAmount > HIGH_WATER) setImmediate(go, next)
      else next()
    }
    start({
      event: (seq) => socket.send(event(seq).slice(), { binary: true, compress: false }),
      flush: (next) => setImmediate(go, next)
    })
    return port
  }
}

const floor: Carrier = {
  listens: "receive",
  receive: (onEvent) =>
    new Promise((resolve) => {
      const server = createTcpServer({ noDelay: true }, (socket) => {
        let rest = Buffer.alloc(0)
        socket.on("error", () => {})
        socket.on("data", (chunk) => {
          const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
          let at = 0
          while (bytes.length - at >= 4) {
            const length = bytes.readUInt32BE(at)
            if (bytes.length - at - 4 < length) break
            onEvent()
            at += 4 + length
          }
          rest = bytes.subarray(at)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resolve(typeof address === "object" && address !== null ? address.port : 0)
      })
    }),
  send: async (port, start) => {
    const socket = connect({ host: "127.0.0.1", port, noDelay: true })
    await new Promise((resolve) => socket.once("connect", resolve))
    socket.on("error", () => {})
    let turn = Buffer.allocUnsafe(4096)
    let used = 0
    start({
      event: (seq) => {
        if (used === 0) turn = Buffer.allocUnsafe(4096)
        // Length, then: handle, seq and five letters at fixed places.
        turn.writeUInt32BE(17, used)
        turn.writeUInt32BE(7, used + 4)
        turn.writeUInt32BE(seq >>> 0, used + 8)
        turn.write("hello", used + 12, "latin1")
        used += 21
      },
      flush: (next) => {
        const full = !socket.write(turn.subarray(0, used))
        used = 0
        if (full) socket.once("drain", () => setImmediate(next))
        else setImmediate(next)
      }
    })
    return port
  }
}

export const carriers: Readonly<Record<string, Carrier>> = { ours, ws: webSocket, "grpc-js": grpcJs, floor }
