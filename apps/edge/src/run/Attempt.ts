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

/** Repeats beyond those of a resumption that a node may send for one run; each costs the edge as much as an event. */
const REPEATS = 1000

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
  /** The newest event that came on the present link: what has not come again is not acknowledged there. */
  #seenOnLink = 0
  /** Events that may come again before the node is taken for broken. */
  #repeatsLeft = REPEATS
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
      this.#repeated(seq)
      return
    }
    if (this.orphaned) {
      this.#afterTheEnd(seq, event, bytes)
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
    this.#seenOnLink = seq
    this.#unackedBytes += bytes
    if (isTerminal(event)) this.#ended = true
    this.#owner.onAttemptEvent(this, event, bytes)
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
    this.#seenOnLink = afterSeq
    this.#repeatsLeft = this.#lastSeq - afterSeq + REPEATS
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
      this.#ack()
      this.link.release(this.handle)
    }
    this.claim.release()
    this.#owner.onOver(this)
  }

  #ack(): void {
    const seq = Math.min(this.#lastSeq, this.#seenOnLink)
    if (seq <= this.#ackedSeq) return
    this.#ackedSeq = seq
    if (seq === this.#lastSeq) this.#unackedBytes = 0
    this.link?.ack(this.handle, seq)
  }

  /** An event that the edge has: dropped, and acknowledged again with what else there is. */
  #repeated(seq: number): void {
    this.#sawDuplicate = true
    this.#seenOnLink = Math.max(this.#seenOnLink, seq)
    this.#owner.onDuplicate(this)
    this.#repeatsLeft -= 1
    if (this.#repeatsLeft >= 0) return
    const message = `more than ${REPEATS} events of a run that had come before`
    this.link?.end("protocol_error", message)
  }

  /** The run no longer listens, and rules that its node may have broken don't matter: only the end of it does. */
  #afterTheEnd(seq: number, event: NodeRunEvent, bytes: number): void {
    this.#lastSeq = seq
    this.#seenOnLink = seq
    this.#unackedBytes += bytes
    if (isTerminal(event)) this.end()
  }

  #violate(message: string): void {
    this.#owner.onViolation(this, message)
  }
}
