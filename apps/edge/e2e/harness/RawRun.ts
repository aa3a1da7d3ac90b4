// A run at a raw node: it numbers its events and obeys the run window, unless a test takes the pen itself.
import type { MessageInitShape } from "@bufbuild/protobuf"
import { FailureCode, FinishReason, type RunEventSchema } from "@iop/platform-common/gen/iop/v1/run_event_pb"
import type { RunCancel, RunRequest } from "@iop/platform-common/gen/iop/v1/run_pb"
import { nodeFrame, type RawNode } from "./RawNode.ts"
import { eventually } from "./waiting.ts"

type Init = MessageInitShape<typeof RunEventSchema>
export type EventInit = NonNullable<Init["event"]>

export class RawRun {
  readonly request: RunRequest
  handle: number
  /** The RunCancel that came for it. */
  cancelled: RunCancel | undefined
  /** The highest seq that the edge acknowledged. */
  ackedSeq = 0
  /** Called once when the RunCancel comes. */
  onCancel: (() => void) | undefined
  #node: RawNode
  readonly #window: number
  #lastSeq = 0
  /** Events that were sent and not acknowledged, and after them those that wait for the window. */
  #unacked: Array<{ readonly seq: number; readonly event: EventInit; readonly bytes: number }> = []
  #waiting: Array<EventInit> = []
  #unackedBytes = 0

  constructor(node: RawNode, request: RunRequest, window: number) {
    this.#node = node
    this.request = request
    this.handle = request.handle
    this.#window = window
  }

  /** The run's prompt or the text of its first message. */
  get text(): string {
    const kind = this.request.input?.kind
    if (kind?.case === "prompt") return kind.value.text
    if (kind?.case !== "chat") return ""
    const content = kind.value.messages[0]?.parts[0]?.content
    return content?.case === "text" ? content.value : ""
  }

  /** The seq of the last event that was sent. */
  get lastSeq(): number {
    return this.#lastSeq
  }

  get waitingEvents(): number {
    return this.#waiting.length
  }

  /** Sends events as the window allows. */
  send(...events: ReadonlyArray<EventInit>): this {
    for (const event of events) this.#waiting.push(event)
    this.#pump()
    return this
  }

  started(): this {
    return this.send({ case: "started", value: {} })
  }

  delta(text: string): this {
    return this.send(textEvent(text))
  }

  completed(): this {
    return this.send({ case: "completed", value: { finishReason: FinishReason.STOP } })
  }

  failed(message: string, retryable: boolean): this {
    return this.send({ case: "failed", value: { code: FailureCode.ADAPTER_ERROR, message, retryable } })
  }

  stopped(reason = "as asked"): this {
    return this.send({ case: "cancelled", value: { reason } })
  }

  /** A whole answer. */
  answer(...texts: ReadonlyArray<string>): this {
    return this.send({ case: "started", value: {} }, ...texts.map(textEvent), {
      case: "completed",
      value: { finishReason: FinishReason.STOP }
    })
  }

  /** Deltas and the end, after `started`. */
  answerRest(texts: ReadonlyArray<string>): this {
    return this.send(...texts.map(textEvent), {
      case: "completed",
      value: { finishReason: FinishReason.STOP }
    })
  }

  /** Stops as asked: forgets what waits and says so. */
  halt(): void {
    this.#waiting = []
    this.stopped()
  }

  /** An event with any seq, past every rule; the run's own numbering stays as it is. */
  forge(seq: number, event: EventInit): void {
    this.#node.send({ case: "runEvent", value: { handle: this.handle, seq, event } })
  }

  /** Waits until the RunCancel has come. */
  async untilCancelled(boundMs?: number): Promise<RunCancel> {
    return eventually(`a RunCancel for handle ${this.handle}`, () => this.cancelled, boundMs)
  }

  /** For the node: the edge acknowledged all up to `seq`. */
  acknowledged(seq: number): void {
    this.ackedSeq = Math.max(this.ackedSeq, seq)
    let done = 0
    while (done < this.#unacked.length && this.#unacked[done]!.seq <= seq) {
      this.#unackedBytes -= this.#unacked[done]!.bytes
      done += 1
    }
    this.#unacked.splice(0, done)
    this.#pump()
  }

  /** For the node: the edge wants it stopped. */
  wasCancelled(cancel: RunCancel): void {
    this.cancelled = cancel
    this.onCancel?.()
  }

  /** What a node claims to hold of it when it registers again. */
  get held() {
    return {
      runId: this.request.runId,
      attempt: this.request.attempt,
      firstUnackedSeq: this.#unacked[0]?.seq ?? this.#lastSeq + 1,
      lastSeq: this.#lastSeq
    }
  }

  /** Goes on over another link: sends again what came after `afterSeq`. */
  resume(node: RawNode, handle: number, afterSeq: number): void {
    this.#node = node
    this.handle = handle
    this.acknowledged(afterSeq)
    for (const { seq, event } of this.#unacked) this.forge(seq, event)
    this.#pump()
  }

  #pump(): void {
    const batch: Array<Buffer> = []
    let next = 0
    while (next < this.#waiting.length) {
      const event = this.#waiting[next]!
      const seq = this.#lastSeq + 1
      const frame = nodeFrame({ case: "runEvent", value: { handle: this.handle, seq, event } })
      if (this.#unackedBytes > 0 && this.#unackedBytes + frame.length > this.#window) break
      this.#lastSeq = seq
      this.#unackedBytes += frame.length
      this.#unacked.push({ seq, event, bytes: frame.length })
      batch.push(frame)
      next += 1
    }
    this.#waiting.splice(0, next)
    if (batch.length > 0) this.#node.sendBytes(Buffer.concat(batch))
  }
}

/** A piece of text as an event. */
export const textEvent = (text: string): EventInit => ({
  case: "delta",
  value: { content: { case: "text", value: text } }
})
