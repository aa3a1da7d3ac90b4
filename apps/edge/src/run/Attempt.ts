// One execution of a run on one node: its slot, its handle, and the rules of its event stream (numbers without gaps,
// the window, started first, nothing after the end). It may outlive the run: a node that does not answer a cancel
// keeps its slot, visibly, until it answers or its link ends.
import { isTerminal, type NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import type { SlotClaim } from "../node/NodeEntry.ts"
import type { AttemptSink, CancelCode, NodeLink } from "../node/NodeLink.ts"

/** What the attempt tells the run that it belongs to. */
export interface AttemptOwner {
  readonly runWindowBytes: number
  /** An event in its order. */
  readonly onAttemptEvent: (attempt: Attempt, event: NodeRunEvent, bytes: number) => void
  /** The node broke a rule. */
  readonly onViolation: (attempt: Attempt, message: string) => void
  readonly onAttemptReadEnd: (attempt: Attempt) => void
  /** Whether more may be acknowledged: nobody that the run waits for is too far behind. */
  readonly mayAcknowledge: () => boolean
  /** Call `acknowledge(true)` in a moment. */
  readonly acknowledgeLater: (attempt: Attempt) => void
  readonly onDuplicate: (attempt: Attempt) => void
  /** The attempt is over and its slot free. */
  readonly onOver: (attempt: Attempt) => void
}

/** Acknowledge when this part of the window is used: often enough that a node never waits, seldom enough to cost nothing. */
const ACK_PART = 4

export class Attempt implements AttemptSink {
  readonly number: number
  readonly claim: SlotClaim
  /** Monotonic milliseconds. */
  readonly dispatchedAt: number
  link: NodeLink | undefined
  handle = 0
  /** Set when the run no longer listens: what still comes only moves the window on. */
  orphaned = false
  over = false
  /** Whether consumers have seen a delta of it: from then on the run is never given to another node. */
  delivered = false
  /** Whether the node was told to stop. */
  cancelSent = false
  #lastSeq = 0
  #ackedSeq = 0
  #unackedBytes = 0
  #sawDuplicate = false
  #ended = false
  readonly #owner: AttemptOwner

  constructor(number: number, claim: SlotClaim, dispatchedAt: number, owner: AttemptOwner) {
    this.number = number
    this.claim = claim
    this.dispatchedAt = dispatchedAt
    this.#owner = owner
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  get ackedSeq(): number {
    return this.#ackedSeq
  }

  /** Whether the node may be waiting for an acknowledgement. */
  get holdsBack(): boolean {
    return this.#unackedBytes > 0 && !this.#owner.mayAcknowledge()
  }

  onEvent(seq: number, event: NodeRunEvent, bytes: number): void {
    if (this.over || this.#ended) return
    if (seq <= this.#lastSeq) {
      this.#sawDuplicate = true
      this.#owner.onDuplicate(this)
      return
    }
    if (seq !== this.#lastSeq + 1) {
      this.#violate(`event ${this.#lastSeq + 1} is missing, ${seq} came`)
      return
    }
    if (this.#unackedBytes > 0 && this.#unackedBytes + bytes > this.#owner.runWindowBytes) {
      this.#violate(
        `${this.#unackedBytes + bytes} unacknowledged bytes, the run window is ${this.#owner.runWindowBytes}`
      )
      return
    }
    this.#lastSeq = seq
    this.#unackedBytes += bytes
    const terminal = isTerminal(event)
    if (terminal) this.#ended = true
    if (!this.orphaned) this.#owner.onAttemptEvent(this, event, bytes)
    else if (terminal) this.end()
  }

  onReadEnd(): void {
    if (!this.over) this.acknowledge()
    this.#owner.onAttemptReadEnd(this)
  }

  /**
   * Acknowledges what may be acknowledged: at once the first event, since a large one may wait behind it, and what
   * fills a part of the window; the rest a little later, together with that of other runs.
   */
  acknowledge(late = false): void {
    if (this.link === undefined || this.over) return
    if (this.#sawDuplicate) {
      this.#sawDuplicate = false
      this.link.ack(this.handle, this.#ackedSeq)
    }
    if (this.#unackedBytes === 0) return
    if (!this.orphaned && !this.#owner.mayAcknowledge()) return
    const now = late || this.#ackedSeq === 0 || this.#unackedBytes * ACK_PART >= this.#owner.runWindowBytes
    if (now) this.#ack()
    else this.#owner.acknowledgeLater(this)
  }

  /** The node came back with the run, on a new link. Events after `afterSeq` come again. */
  resume(link: NodeLink, handle: number, afterSeq: number): void {
    this.link = link
    this.handle = handle
    this.#ackedSeq = Math.max(this.#ackedSeq, afterSeq)
  }

  /** The link is down; whether the attempt goes on is for the run to decide. */
  linkDown(): void {
    this.link = undefined
    if (this.orphaned) this.end()
  }

  /**
   * Tells the node to stop, once. "over": the request had not left, or there is no link, so nothing will be answered.
   */
  cancel(code: CancelCode, reason: string): "told" | "over" {
    if (this.over) return "over"
    if (this.link === undefined) {
      this.end()
      return "over"
    }
    if (this.cancelSent) return "told"
    this.cancelSent = true
    if (this.link.cancel(this.handle, code, reason) === "sent") return "told"
    this.end()
    return "over"
  }

  /** The node is done with it: acknowledges the rest, gives back handle and slot. */
  end(): void {
    if (this.over) return
    this.over = true
    if (this.link !== undefined) {
      if (this.#lastSeq > this.#ackedSeq) this.#ack()
      this.link.release(this.handle)
    }
    this.claim.release()
    this.#owner.onOver(this)
  }

  #ack(): void {
    this.#ackedSeq = this.#lastSeq
    this.#unackedBytes = 0
    this.link?.ack(this.handle, this.#ackedSeq)
  }

  #violate(message: string): void {
    if (this.orphaned) return
    this.#owner.onViolation(this, message)
  }
}
