// What the agent needs of a connection to the edge, and how it gets one. Both are interfaces, so that tests play
// the edge in memory and on virtual time, and a fault injector can stand between the agent and the socket.

import type { Effect } from "effect"

/** One connection to the edge. A `FrameConnection` of @iop/proto-socket is one. */
export interface NodeConnection {
  /** Queues a frame; control frames are written before queued data frames. Does nothing once the connection ended. */
  readonly send: (payload: Uint8Array, lane: "control" | "data") => void
  /** Sets the largest frame that is accepted from the edge, in bytes. */
  readonly setMaxFrameBytes: (bytes: number) => void
  /** Ends the connection after what is queued was written, for at most `flushMs` milliseconds. */
  readonly close: (message: string, flushMs: number) => void
  /** Ends the connection at once. */
  readonly destroy: (message: string) => void
}

/** Why a connection ended. */
export interface ConnectionEnd {
  /** The kind, such as `reset`; failures of one kind are logged once, then at most once a minute. */
  readonly tag: string
  /** For a person. */
  readonly message: string
}

/** What the agent wants to hear from a connection. The callbacks are synchronous and must not throw. */
export interface ConnectionOptions {
  /** The largest frame that is accepted before the registration, in bytes. */
  readonly maxFrameBytes: number
  /** Frames in the order of their arrival, as many as one read brought. */
  readonly onFrames: (frames: ReadonlyArray<Uint8Array>) => void
  /** Called once, when the connection has ended for whatever reason. */
  readonly onClose: (reason: ConnectionEnd) => void
}

/** Why a dial did not lead to a connection. */
export interface DialFailure {
  /** Such as `refused`. */
  readonly kind: string
  /** For a person: what, where. */
  readonly message: string
}

/** Opens a connection to the edge. Interrupting it abandons the attempt. */
export type Dialer = (options: ConnectionOptions) => Effect.Effect<NodeConnection, DialFailure>
