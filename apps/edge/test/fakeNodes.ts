// Nodes without sockets for tests of the registry, the selection and the runs: a link that records what it was told
// and says what the test wants.
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { NodeEntry } from "../src/node/NodeEntry.ts"
import type { AttemptSink, CancelCode, LinkEnd, NodeLink, RunDispatch } from "../src/node/NodeLink.ts"
import { NodeId, type NodeRecord } from "../src/node/NodeRecord.ts"
import type { NodeRegistry } from "../src/node/NodeRegistry.ts"
import type { AdapterState, NodeStatus } from "../src/node/NodeStatus.ts"
import { digestSecret } from "../src/node/NodeStore.ts"

export interface RecordOptions {
  readonly alias?: string
  readonly labels?: Record<string, string>
  readonly slots?: number
  readonly nodeSlots?: number
  readonly adapter?: string
  readonly targets?: ReadonlyArray<string>
}

/** A record with one mock adapter: `mock`, four slots, discovered targets. */
export const record = (id: string, options: RecordOptions = {}): NodeRecord => ({
  id: NodeId.make(id),
  alias: options.alias ?? id,
  tokenDigest: digestSecret(`token of ${id}`),
  labels: options.labels ?? {},
  runtime: {
    ...(options.nodeSlots === undefined ? {} : { slots: options.nodeSlots }),
    drainTimeoutMs: 1000,
    probeIntervalMs: 1000
  },
  adapters: [
    {
      name: options.adapter ?? "mock",
      type: "mock",
      slots: options.slots ?? 4,
      targets: options.targets ?? [],
      settings: {
        name: options.adapter ?? "mock",
        type: "mock",
        slots: options.slots ?? 4,
        targets: [],
        seed: 1
      }
    }
  ]
})

export const circuitLimits = { failures: 5, windowMs: 10_000, openForMs: 10_000 }

/** An entry that belongs to no registry. */
export const entry = (id: string, options: RecordOptions = {}): NodeEntry =>
  new NodeEntry(record(id, options), "rev", circuitLimits, () => {})

export const status = (
  targets: ReadonlyArray<string>,
  options: {
    readonly state?: AdapterState
    readonly reason?: string
    readonly adapter?: string
    readonly draining?: boolean
    readonly revision?: string
  } = {}
): NodeStatus => ({
  revision: options.revision ?? "rev",
  draining: options.draining ?? false,
  adapters: new Map([
    [
      options.adapter ?? "mock",
      {
        name: options.adapter ?? "mock",
        state: options.state ?? "ready",
        reason: options.reason ?? "",
        targets: targets.map((name) => ({ name, capabilities: [] }))
      }
    ]
  ])
})

/** A run that a fake link was given. */
export interface Sent {
  readonly dispatch: RunDispatch
  readonly handle: number
  readonly sink: AttemptSink
}

let epochs = 0

export class FakeLink implements NodeLink {
  readonly epoch = ++epochs
  readonly remote = "127.0.0.1:1"
  readonly agent = "fake 1"
  readonly sent: Array<Sent> = []
  readonly acks: Array<{ readonly handle: number; readonly seq: number }> = []
  readonly cancels: Array<{ readonly handle: number; readonly code: CancelCode; readonly reason: string }> =
    []
  readonly released: Array<number> = []
  ended: LinkEnd | undefined
  drained = false
  /** Set: every request is refused with this sentence. */
  unsendable: string | undefined
  /** Whether requests wait in the link, so that a cancel removes them. */
  holding = false
  #handles = 0
  readonly #seqs = new Map<number, number>()

  readonly sendRun: NodeLink["sendRun"] = (dispatch, sink) => {
    if (this.unsendable !== undefined) return { unsendable: this.unsendable }
    const handle = ++this.#handles
    this.sent.push({ dispatch, handle, sink })
    return { handle }
  }

  readonly adopt: NodeLink["adopt"] = () => ++this.#handles

  readonly ack = (handle: number, seq: number) => {
    this.acks.push({ handle, seq })
  }

  readonly cancel: NodeLink["cancel"] = (handle, code, reason) => {
    this.cancels.push({ handle, code, reason })
    return this.holding ? "removed" : "sent"
  }

  readonly release = (handle: number) => {
    this.released.push(handle)
  }

  readonly drain = () => {
    this.drained = true
  }

  readonly end = (code: LinkEnd) => {
    this.ended = code
  }

  /** The run that was given last. */
  get last(): Sent {
    const sent = this.sent[this.sent.length - 1]
    if (sent === undefined) throw new Error("the link was given no run")
    return sent
  }

  /** Says events of a run, numbered on, as one read of the socket. */
  say(sent: Sent, ...events: ReadonlyArray<NodeRunEvent>): void {
    for (const event of events) {
      const seq = (this.#seqs.get(sent.handle) ?? 0) + 1
      this.#seqs.set(sent.handle, seq)
      sent.sink.onEvent(seq, event, 40)
    }
    sent.sink.onReadEnd()
  }
}

export const started: NodeRunEvent = { type: "started" }
export const text = (piece: string): NodeRunEvent => ({ type: "delta", choice: 0, kind: "text", text: piece })
export const completed: NodeRunEvent = { type: "completed", finishReason: "stop" }
export const cancelled: NodeRunEvent = { type: "cancelled", reason: "as asked" }
export const failure = (retryable: boolean, message = "backend fell over"): NodeRunEvent => ({
  type: "failed",
  code: "adapter_error",
  message,
  retryable
})

/** Connects a node of the registry: attached, configured and ready. */
export const join = (
  registry: NodeRegistry["Service"],
  id: string,
  targets: ReadonlyArray<string> = ["echo"]
): FakeLink => {
  const known = registry.entry(id)
  if (known === undefined) throw new Error(`no node ${id}`)
  const link = new FakeLink()
  const joined = registry.attach(known.record, link)
  registry.setStatus(joined, link, { ...status(targets), revision: joined.revision })
  return link
}
