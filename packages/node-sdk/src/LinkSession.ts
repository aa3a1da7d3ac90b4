// One link, from the dial to its end: registers, applies the configuration that comes back, answers pings, hands
// frames to the runs and notices when the edge has fallen silent. Frames are handled where they arrive, in plain
// code; only what takes time runs in the session's fiber.

import { type Goodbye, GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import type { NodeConfigPayload } from "@iop/platform-common/gen/iop/v1/node_config_pb"
import {
  type RegisterAccepted,
  type RegisterResponse,
  RejectCode
} from "@iop/platform-common/gen/iop/v1/register_pb"
import type { RunRequest } from "@iop/platform-common/gen/iop/v1/run_pb"
import { decodeEdgeFrame } from "@iop/platform-common/protocol/edgeFrameWire"
import {
  encodeNodeGoodbye,
  encodePong,
  encodeRegisterRequest
} from "@iop/platform-common/protocol/nodeFrameWire"
import { PROTOCOL_VERSION } from "@iop/platform-common/protocol/version"
import { WireError } from "@iop/platform-common/protocol/WireError"
import { Clock, Deferred, Effect, Redacted } from "effect"
import type { Dialer, NodeConnection } from "./NodeConnection.ts"
import type { RunLink, RunTable } from "./RunTable.ts"

/** Why a session ended. */
export interface SessionEnd {
  /** The kind, one of few: failures of one kind are logged together. */
  readonly kind: string
  /** For a person. */
  readonly message: string
  /** Whether the edge said that retrying cannot help. */
  readonly permanent: boolean
  /** The edge's earliest sensible retry in milliseconds; 0: it named none. */
  readonly retryAfterMs: number
  /** Whether the link held for so long that it was a good one: the next failure starts the backoff anew. */
  readonly held: boolean
}

/** What a session needs of the agent. */
export interface SessionOwner {
  readonly dial: Dialer
  readonly token: Redacted.Redacted<string>
  readonly bootId: Uint8Array
  readonly agentName: string
  readonly agentVersion: string
  readonly adapterKinds: ReadonlyArray<string>
  readonly runs: RunTable
  /** The link is up: held runs are to be resumed or dropped, within the call. */
  readonly onLink: (link: SessionLink, accepted: RegisterAccepted) => void
  /** Tells of the registration. */
  readonly onRegistered: (accepted: RegisterAccepted) => Effect.Effect<void>
  /** Puts the configuration in force. */
  readonly applyConfig: (config: NodeConfigPayload) => Effect.Effect<void>
  /** A run that may be taken or refused. */
  readonly onRunRequest: (request: RunRequest) => void
  /** Reports the node's status, now and at every change, until interrupted. */
  readonly reportStatus: (link: SessionLink) => Effect.Effect<never>
  /** Finishes the runs within the time, once the edge asks for it. */
  readonly finishRuns: (timeoutMs: number) => Effect.Effect<void>
  /** The edge wants no more than what is running. */
  readonly onDrain: (reason: string) => void
}

/** A registered link, as the agent sees it. */
export interface SessionLink extends RunLink {
  /** Says behind everything that is queued that the process stops, and ends the connection. Waits for its end, but not long. */
  readonly sayGoodbye: (message: string) => Effect.Effect<void>
}

/** How long the edge may take to answer a RegisterRequest, its takeover probe of 2 s included, in milliseconds. */
const REGISTER_TIMEOUT_MS = 10_000
/** The largest RegisterResponse, and the protocol's default for frames of the edge. */
const MAX_EDGE_FRAME_BYTES = 32 * 1024 * 1024
/** The protocol's defaults, for an edge that leaves a figure out. */
const DEFAULT_LIMITS = { maxNodeFrameBytes: 1024 * 1024, runWindowBytes: 256 * 1024 } as const
const DEFAULT_HEARTBEAT = { intervalMs: 5_000, deadAfter: 3 } as const
/** A link that held for this many heartbeats was a good one: 10 s by the protocol's defaults. */
const GOOD_LINK_HEARTBEATS = 2
/** How long a goodbye may take to reach the socket, in milliseconds. */
const FLUSH_MS = 1_000
/** A timer that is this late says that the process stood still, and with it what should have been read. */
const LATE_TIMER_MS = 100
/** Words of the edge in a log line are cut here. */
const MAX_REASON_UNITS = 500

/** Runs one session to its end; never fails. Interruption closes the connection. */
export const runSession = (owner: SessionOwner): Effect.Effect<SessionEnd> =>
  Clock.clockWith((clock) =>
    Effect.suspend(() => {
      const session = new Session(owner, () => Number(clock.monotonicTimeNanosUnsafe() / 1_000n) / 1_000)
      return session.run
    })
  )

/** What the steps of a session share. Times are in milliseconds of the monotonic clock. */
class Session {
  readonly #owner: SessionOwner
  readonly #now: () => number
  readonly #ended = Deferred.makeUnsafe<SessionEnd>()
  readonly #closed = Deferred.makeUnsafe<void>()
  readonly #accepted = Deferred.makeUnsafe<{
    readonly accepted: RegisterAccepted
    readonly link: SessionLink
  }>()
  readonly #drainAsked = Deferred.makeUnsafe<number>()
  #connection: NodeConnection | undefined
  #heardAt = 0
  #registeredAt: number | undefined
  #heartbeatMs: number = DEFAULT_HEARTBEAT.intervalMs
  /** What this side said when it ended the link in order. */
  #farewell: { readonly kind: string; readonly message: string } | undefined
  #over = false

  constructor(owner: SessionOwner, now: () => number) {
    this.#owner = owner
    this.#now = now
  }

  get run(): Effect.Effect<SessionEnd> {
    return this.#owner
      .dial({
        maxFrameBytes: MAX_EDGE_FRAME_BYTES,
        onFrames: (frames) => this.#onFrames(frames),
        onClose: ({ message, tag }) => {
          Deferred.doneUnsafe(this.#closed, Effect.void)
          if (this.#farewell === undefined) this.#end(`link_${tag}`, message)
          else this.#end(this.#farewell.kind, this.#farewell.message)
        }
      })
      .pipe(
        Effect.flatMap((connection) => {
          this.#connection = connection
          // A stranger that spoke at once is not told the token.
          if (!this.#over) this.#register(connection)
          return Effect.raceFirst(Deferred.await(this.#ended), this.#live)
        }),
        Effect.catch(({ kind, message }) => Effect.succeed(this.#endOf(`dial_${kind}`, message))),
        Effect.ensuring(
          Effect.sync(() => {
            this.#over = true
            this.#owner.runs.detach()
            this.#connection?.destroy("the session is over")
          })
        )
      )
  }

  /** What takes time on a link; ends when the edge falls silent or has drained the node. */
  get #live(): Effect.Effect<SessionEnd> {
    return Deferred.await(this.#accepted).pipe(
      Effect.timeoutOption(REGISTER_TIMEOUT_MS),
      Effect.flatMap((registered) => {
        if (registered._tag === "None") {
          return Effect.succeed(
            this.#endOf(
              "no_answer",
              `the edge did not answer the registration within ${REGISTER_TIMEOUT_MS} ms; is this the port for nodes?`
            )
          )
        }
        const { accepted, link } = registered.value
        return this.#owner
          .onRegistered(accepted)
          .pipe(
            Effect.andThen(
              accepted.config === undefined ? Effect.void : this.#owner.applyConfig(accepted.config)
            ),
            Effect.andThen(
              Effect.raceFirst(
                this.#owner.reportStatus(link),
                Effect.raceFirst(this.#watchEdge(accepted), this.#awaitDrain)
              )
            )
          )
      })
    )
  }

  #register(connection: NodeConnection): void {
    this.#heardAt = this.#now()
    const { agentName, agentVersion, adapterKinds, bootId, runs, token } = this.#owner
    const frame = encodeRegisterRequest({
      protocolVersion: PROTOCOL_VERSION,
      token: Redacted.value(token),
      bootId,
      agentName,
      agentVersion,
      adapterKinds: [...adapterKinds],
      heldRuns: runs.held.map((run) => ({ ...run }))
    })
    connection.send(frame, "control")
  }

  #onFrames(frames: ReadonlyArray<Uint8Array>): void {
    if (this.#over) return
    this.#heardAt = this.#now()
    for (const frame of frames) {
      try {
        this.#onFrame(frame)
      } catch (thrown) {
        if (!(thrown instanceof WireError)) throw thrown
        this.#breakOff(thrown.message)
      }
      if (this.#over) return
    }
  }

  #onFrame(bytes: Uint8Array): void {
    const frame = decodeEdgeFrame(bytes)
    if (frame.kind === "unknown") return
    if (this.#registeredAt === undefined) {
      if (frame.kind === "register_response") this.#onRegisterResponse(frame.value)
      else if (frame.kind === "goodbye") this.#onGoodbye(frame.value)
      else this.#breakOff(`the first frame was no RegisterResponse but ${frame.kind}`)
      return
    }
    const { runs } = this.#owner
    switch (frame.kind) {
      case "run_ack":
        if (!runs.ack(frame.handle, frame.seq)) {
          this.#breakOff(`event ${frame.seq} of handle ${frame.handle} was acknowledged but never sent`)
        }
        return
      case "ping":
        this.#connection?.send(encodePong(frame.nonce), "control")
        return
      case "run_request": {
        const conflict = runs.conflictOf(frame.value)
        if (conflict === undefined) this.#owner.onRunRequest(frame.value)
        else this.#breakOff(conflict)
        return
      }
      case "run_cancel":
        runs.cancel(frame.handle, frame.reason === "" ? "the edge cancelled the run" : frame.reason)
        return
      case "drain":
        this.#owner.onDrain(frame.reason)
        Deferred.doneUnsafe(this.#drainAsked, Effect.succeed(frame.timeoutMs))
        return
      case "goodbye":
        this.#onGoodbye(frame.value)
        return
      default:
        this.#breakOff(`${frame.kind} is no frame for a registered node`)
    }
  }

  #onRegisterResponse(response: RegisterResponse): void {
    const { result } = response
    if (result.case === "accepted") {
      const accepted = result.value
      const link: SessionLink = {
        send: (frame) => this.#connection?.send(frame, "data"),
        sayGoodbye: (message) => this.#sayGoodbye("shutdown", message),
        runWindowBytes: accepted.limits?.runWindowBytes || DEFAULT_LIMITS.runWindowBytes,
        maxNodeFrameBytes: accepted.limits?.maxNodeFrameBytes || DEFAULT_LIMITS.maxNodeFrameBytes
      }
      this.#registeredAt = this.#now()
      this.#heartbeatMs = accepted.heartbeatIntervalMs || DEFAULT_HEARTBEAT.intervalMs
      this.#connection?.setMaxFrameBytes(accepted.limits?.maxEdgeFrameBytes || MAX_EDGE_FRAME_BYTES)
      // At once: acknowledgements and cancels of resumed runs may be in the same read.
      this.#owner.onLink(link, accepted)
      Deferred.doneUnsafe(this.#accepted, Effect.succeed({ accepted, link }))
    } else if (result.case === "rejected") {
      const { code, message, retryAfterMs, retryable } = result.value
      const name = REJECTIONS[code] ?? "unknown"
      this.#end(`rejected_${name}`, `the edge refused this node (${name}): ${bounded(message)}`, {
        permanent: !retryable,
        retryAfterMs
      })
    } else {
      this.#breakOff("the edge's RegisterResponse says neither accepted nor rejected")
    }
  }

  #onGoodbye({ code, message }: Goodbye): void {
    const name = GOODBYES[code] ?? "unspecified"
    const why = GOODBYE_MEANINGS[name] ?? "the edge ended the link"
    this.#end(`goodbye_${name}`, message === "" ? why : `${why}: ${bounded(message)}`)
  }

  /** The edge broke the protocol. Without a goodbye, which would say that the runs are over. */
  #breakOff(message: string): void {
    this.#connection?.destroy(message)
    this.#end("protocol_error", `the peer does not speak this protocol as it should: ${bounded(message)}`)
  }

  #sayGoodbye(kind: string, message: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const connection = this.#connection
      if (connection === undefined || this.#over) return Effect.void
      this.#farewell = { kind, message }
      connection.send(encodeNodeGoodbye(GoodbyeCode.SHUTDOWN, message), "data")
      connection.close(message, FLUSH_MS)
      return Effect.ignore(Effect.timeout(Deferred.await(this.#closed), FLUSH_MS + 500))
    })
  }

  /**
   * Ends the session when the edge was silent for as long as it would suffer a silent node. Judged after reading:
   * when this process stood still, what the edge sent meanwhile gets its turn, and the edge one more interval.
   */
  #watchEdge(accepted: RegisterAccepted): Effect.Effect<SessionEnd> {
    const intervalMs = this.#heartbeatMs
    const silenceMs = intervalMs * (accepted.heartbeatDeadAfter || DEFAULT_HEARTBEAT.deadAfter)
    const session = this
    return Effect.gen(function* () {
      let deadline = session.#heardAt + silenceMs
      let pardonedAt = Number.NEGATIVE_INFINITY
      while (true) {
        yield* Effect.sleep(Math.max(1, deadline - session.#now()))
        const lateMs = session.#now() - deadline
        yield* afterReading
        if (session.#heardAt + silenceMs > deadline) {
          deadline = session.#heardAt + silenceMs
        } else if (lateMs > LATE_TIMER_MS && pardonedAt < session.#heardAt) {
          pardonedAt = session.#now()
          deadline = pardonedAt + intervalMs
        } else {
          const silentMs = Math.round(session.#now() - session.#heardAt)
          const message = `the edge was silent for ${silentMs} ms, ${silenceMs} ms are allowed`
          const end = session.#endOf("edge_silent", message)
          return end
        }
      }
    })
  }

  get #awaitDrain(): Effect.Effect<SessionEnd> {
    const message = "the edge drained this node, which will register again"
    return Deferred.await(this.#drainAsked).pipe(
      Effect.flatMap((timeoutMs) => this.#owner.finishRuns(timeoutMs)),
      Effect.andThen(this.#sayGoodbye("drained", message)),
      Effect.andThen(Effect.sync(() => this.#endOf("drained", message)))
    )
  }

  #endOf(
    kind: string,
    message: string,
    advice: { readonly permanent: boolean; readonly retryAfterMs: number } = NO_ADVICE
  ): SessionEnd {
    return {
      kind,
      message,
      ...advice,
      held:
        this.#registeredAt !== undefined &&
        this.#now() - this.#registeredAt >= GOOD_LINK_HEARTBEATS * this.#heartbeatMs
    }
  }

  #end(kind: string, message: string, advice = NO_ADVICE): void {
    if (this.#over) return
    this.#over = true
    Deferred.doneUnsafe(this.#ended, Effect.succeed(this.#endOf(kind, message, advice)))
  }
}

const NO_ADVICE = { permanent: false, retryAfterMs: 0 }

/** Gives the sockets a turn: timers run before what has arrived meanwhile is read. */
const afterReading = Effect.callback<void>((resume) => {
  setImmediate(() => setImmediate(() => resume(Effect.void)))
})

const bounded = (text: string) =>
  text.length > MAX_REASON_UNITS ? `${text.slice(0, MAX_REASON_UNITS)}…` : text

const REJECTIONS: Readonly<Record<number, string>> = {
  [RejectCode.UNKNOWN_TOKEN]: "unknown_token",
  [RejectCode.UNSUPPORTED_VERSION]: "unsupported_version",
  [RejectCode.ALREADY_CONNECTED]: "already_connected",
  [RejectCode.DRAINING]: "draining",
  [RejectCode.MALFORMED]: "malformed"
}

const GOODBYES: Readonly<Record<number, string>> = {
  [GoodbyeCode.SHUTDOWN]: "shutdown",
  [GoodbyeCode.REPLACED]: "replaced",
  [GoodbyeCode.PROTOCOL_ERROR]: "protocol_error",
  [GoodbyeCode.HEARTBEAT]: "heartbeat",
  [GoodbyeCode.TAKEN_OVER]: "taken_over"
}

const GOODBYE_MEANINGS: Readonly<Record<string, string>> = {
  shutdown: "the edge is shutting down",
  replaced: "a newer link of this node replaced this one",
  protocol_error: "the edge says that this node broke the protocol",
  heartbeat: "the edge heard nothing from this node for too long",
  taken_over: "another process with the same token took over while this one did not answer"
}
