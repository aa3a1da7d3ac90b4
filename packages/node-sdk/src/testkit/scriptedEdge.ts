// A test that plays the edge: in memory, where time can be virtual, or over a real socket, for whole processes.

import type { FrameConnection } from "@iop/proto-socket/FrameConnection"
import { type ListenError, listenFrames } from "@iop/proto-socket/FrameListener"
import { Effect, Queue, type Scope } from "effect"
import type { ConnectionEnd, Dialer, DialFailure, NodeConnection } from "../NodeConnection.ts"
import { ScriptedLink } from "./ScriptedLink.ts"

/** An edge that does what a test says. */
export interface ScriptedEdge {
  /** The next connection of a node. Its RegisterRequest waits to be accepted. */
  readonly link: Effect.Effect<ScriptedLink>
}

/** A scripted edge without sockets. */
export interface MemoryEdge extends ScriptedEdge {
  /** How a node under test dials. */
  readonly dial: Dialer
  /** Lets dials fail from now on; undefined: lets them succeed again. */
  readonly refuseDials: (failure: DialFailure | undefined) => void
  /** Dials that were made, whether they succeeded or not. */
  readonly dials: () => number
}

/** A scripted edge on a port of the loopback interface. */
export interface TcpEdge extends ScriptedEdge {
  readonly host: string
  readonly port: number
}

/** Makes a scripted edge without sockets. */
export const memoryEdge = (): MemoryEdge => {
  const links = Effect.runSync(Queue.unbounded<ScriptedLink>())
  let refusal: DialFailure | undefined
  let dials = 0
  return {
    link: Queue.take(links),
    refuseDials: (failure) => {
      refusal = failure
    },
    dials: () => dials,
    dial: (options) =>
      Effect.suspend(() => {
        dials++
        if (refusal !== undefined) return Effect.fail(refusal)
        const pipe = new MemoryPipe(options.onFrames, options.onClose)
        const link = new ScriptedLink({
          send: (frame) => pipe.toNode(frame),
          cut: () => pipe.end({ tag: "reset", message: "the connection was reset" })
        })
        pipe.edge = link
        Queue.offerUnsafe(links, link)
        return Effect.succeed(pipe.connection)
      })
  }
}

/** Opens a scripted edge on a free port of the loopback interface. */
export const tcpEdge = (): Effect.Effect<TcpEdge, ListenError, Scope.Scope> =>
  Effect.gen(function* () {
    const links = yield* Queue.unbounded<ScriptedLink>()
    const open = new Set<FrameConnection>()
    const listener = yield* listenFrames({
      host: "127.0.0.1",
      port: 0,
      onConnection: (socket) => {
        const connection = socket.open({
          maxFrameBytes: 1024 * 1024,
          writeDeadlineMs: 30_000,
          onFrames: (frames) => link.onFrames(frames),
          onClose: () => {
            open.delete(connection)
            link.onClose()
          }
        })
        open.add(connection)
        const link: ScriptedLink = new ScriptedLink({
          send: (frame) => connection.send(frame, "control"),
          cut: () => connection.destroy("cut by the test")
        })
        Queue.offerUnsafe(links, link)
      }
    })
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const connection of open) connection.destroy("the test is over")
      })
    )
    return { link: Queue.take(links), host: listener.address.host, port: listener.address.port }
  })

/** Two ends without a network. Frames arrive in a later turn, as they would over a socket, and in order. */
class MemoryPipe {
  edge: ScriptedLink | undefined
  readonly #onFrames: (frames: ReadonlyArray<Uint8Array>) => void
  readonly #onClose: (reason: ConnectionEnd) => void
  #state: "open" | "closing" | "ended" = "open"

  constructor(
    onFrames: (frames: ReadonlyArray<Uint8Array>) => void,
    onClose: (reason: ConnectionEnd) => void
  ) {
    this.#onFrames = onFrames
    this.#onClose = onClose
  }

  readonly connection: NodeConnection = {
    send: (payload) => {
      if (this.#state !== "open") return
      queueMicrotask(() => {
        if (this.#state !== "ended") this.edge?.onFrames([payload])
      })
    },
    setMaxFrameBytes: () => undefined,
    close: (message) => {
      if (this.#state !== "open") return
      this.#state = "closing"
      queueMicrotask(() => this.end({ tag: "local", message }))
    },
    destroy: (message) => this.end({ tag: "local", message })
  }

  toNode(frame: Uint8Array): void {
    queueMicrotask(() => {
      if (this.#state === "open") this.#onFrames([frame])
    })
  }

  end(reason: ConnectionEnd): void {
    if (this.#state === "ended") return
    this.#state = "ended"
    queueMicrotask(() => {
      this.edge?.onClose()
      this.#onClose(reason)
    })
  }
}
