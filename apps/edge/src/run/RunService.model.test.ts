// Random lives of one run over two nodes that cut, come back, forget, repeat and end, against what must always hold:
// exactly one terminal outcome, the consumer's events are a prefix of one attempt's, and everything is given back.
import { assert, it } from "@effect/vitest"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { isTerminal } from "@iop/platform-common/protocol/RunEvent"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { completed, FakeLink, failure, join, record, type Sent, started, text } from "../../test/fakeNodes.ts"
import { fixture, limits, submit, turn } from "../../test/runFixture.ts"
import { NodeRegistry } from "../node/NodeRegistry.ts"
import type { RunEvent } from "./RunEvent.ts"
import { RunService } from "./RunService.ts"

/** What can happen, and how often next to the others. */
const weights = {
  emit: 40,
  deliver: 30,
  "deliver all": 10,
  duplicate: 8,
  cut: 8,
  back: 14,
  reborn: 1,
  goodbye: 1,
  complete: 2,
  fail: 1,
  "answer cancel": 4,
  read: 20,
  cancel: 0.5,
  "second node cuts": 4,
  "second node back": 7,
  "time passes": 3,
  deadline: 0.1,
  drain: 0.3
} as const

type Step = keyof typeof weights

const total = Object.values(weights).reduce((sum, weight) => sum + weight, 0)

/** The steps of a seed: up to 150 of them. */
const stepsOf = (seed: number): ReadonlyArray<Step> => {
  let state = seed >>> 0
  // A linear congruential generator is random enough to shuffle steps, and the same everywhere.
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  return Array.from({ length: 10 + Math.floor(random() * 140) }, () => {
    let left = random() * total
    for (const [step, weight] of Object.entries(weights)) {
      left -= weight
      if (left < 0) return step as Step
    }
    return "read"
  })
}

const EVENT_BYTES = 40
/** Small, so that nodes often have to wait for an acknowledgement. */
const WINDOW_BYTES = 200

/** What a node holds of a run: every event that it made, and how far the edge has it. */
interface Held {
  readonly sent: Sent
  readonly events: Array<NodeRunEvent>
  /** Events given to the present link. */
  delivered: number
  acked: number
  handle: number
}

/** A node that keeps its promises: numbers events, keeps what is not acknowledged, repeats it after a resume. */
class ModelNode {
  readonly id: string
  readonly held = new Map<string, Held>()
  link: FakeLink | undefined
  #taken = 0

  constructor(id: string) {
    this.id = id
  }

  /** Takes the runs that the link was given since the last look, and its acknowledgements. */
  look(): void {
    const link = this.link
    if (link === undefined) return
    for (; this.#taken < link.sent.length; this.#taken++) {
      const sent = link.sent[this.#taken]!
      this.held.set(sent.dispatch.runId, { sent, events: [], delivered: 0, acked: 0, handle: sent.handle })
    }
    for (const held of this.held.values()) {
      for (const ack of link.acks) if (ack.handle === held.handle) held.acked = Math.max(held.acked, ack.seq)
    }
  }

  linked(link: FakeLink): void {
    this.link = link
    this.#taken = 0
  }

  emit(event: NodeRunEvent): void {
    for (const held of this.held.values()) {
      const last = held.events[held.events.length - 1]
      if (last !== undefined && isTerminal(last)) continue
      if (held.events.length === 0 && !isTerminal(event)) held.events.push(started)
      else if (held.events.length === 0 && event.type === "completed") held.events.push(started, event)
      else {
        const count = held.events.filter((made) => made.type === "delta").length
        held.events.push(event.type === "delta" ? text(`${held.sent.dispatch.attempt}:${count}`) : event)
      }
    }
  }

  deliver(many: number): void {
    if (this.link === undefined) return
    for (const held of this.held.values()) {
      for (let i = 0; i < many && held.delivered < held.events.length; i++) {
        this.look()
        const unacknowledged = (held.delivered - held.acked) * EVENT_BYTES
        if (unacknowledged > 0 && unacknowledged + EVENT_BYTES > WINDOW_BYTES) break
        held.delivered += 1
        held.sent.sink.onEvent(held.delivered, held.events[held.delivered - 1]!, EVENT_BYTES)
      }
      held.sent.sink.onReadEnd()
    }
  }

  duplicate(): void {
    if (this.link === undefined) return
    for (const held of this.held.values()) {
      if (held.delivered > 0)
        held.sent.sink.onEvent(held.delivered, held.events[held.delivered - 1]!, EVENT_BYTES)
      held.sent.sink.onReadEnd()
    }
  }
}

describe("a run over nodes that come and go", () => {
  it.effect.prop(
    "ends exactly once, shows a prefix of one attempt, and gives everything back",
    { seed: Schema.Int },
    ({ seed }) =>
      Effect.gen(function* () {
        const steps = stepsOf(seed)
        const registry = yield* NodeRegistry
        const runs = yield* RunService
        const nodes = [new ModelNode("a"), new ModelNode("b")] as const
        const [a, b] = nodes

        const connect = (node: ModelNode, reborn: boolean) => {
          if (node.link !== undefined) return
          if (reborn) node.held.clear()
          const entry = registry.entry(node.id)!
          const link = new FakeLink()
          registry.attach(entry.record, link)
          const claims = [...node.held.values()].map((held) => ({
            runId: held.sent.dispatch.runId,
            attempt: held.sent.dispatch.attempt,
            firstUnackedSeq: held.acked + 1,
            lastSeq: held.events.length
          }))
          const answers = runs.resume(entry, link, claims)
          for (const [i, claim] of claims.entries()) {
            const answer = answers[i]!
            const held = node.held.get(claim.runId)!
            if (answer.resume) {
              held.handle = link.adopt(answer.sink)
              answer.attach(held.handle)
              assert.isAtLeast(answer.afterSeq, held.acked)
              assert.isAtMost(answer.afterSeq, held.events.length)
              held.delivered = answer.afterSeq
            } else node.held.delete(claim.runId)
          }
          node.linked(link)
          registry.setStatus(entry, link, {
            revision: entry.revision,
            draining: false,
            adapters: new Map([
              [
                "mock",
                { name: "mock", state: "ready", reason: "", targets: [{ name: "echo", capabilities: [] }] }
              ]
            ])
          })
        }
        const cut = (node: ModelNode, mayResume: boolean) => {
          node.look()
          const link = node.link
          if (link === undefined) return
          node.link = undefined
          runs.linkLost(link, "cut", mayResume)
          registry.detach(link, node.id, "cut", mayResume)
          if (!mayResume) node.held.clear()
        }

        for (const node of nodes) node.linked(join(registry, node.id))
        const { run, reader } = yield* submit({ timeoutMs: 300_000 })
        const seen: Array<RunEvent> = []
        const read = () => seen.push(...reader.take(500).map((relayed) => relayed.event))

        for (const action of steps) {
          for (const node of nodes) node.look()
          switch (action) {
            case "emit":
              for (const node of nodes) node.emit(text(""))
              break
            case "deliver":
              for (const node of nodes) node.deliver(1)
              break
            case "deliver all":
              for (const node of nodes) node.deliver(Number.POSITIVE_INFINITY)
              break
            case "duplicate":
              for (const node of nodes) node.duplicate()
              break
            case "cut":
              cut(a, true)
              break
            case "back":
              connect(a, false)
              break
            case "reborn":
              cut(a, true)
              connect(a, true)
              break
            case "goodbye":
              cut(a, false)
              break
            case "second node cuts":
              cut(b, true)
              break
            case "second node back":
              connect(b, false)
              break
            case "complete":
              for (const node of nodes) node.emit(completed)
              break
            case "fail":
              for (const node of nodes) node.emit(failure(true))
              break
            case "answer cancel":
              for (const node of nodes) {
                if (node.link?.cancels.length) node.emit({ type: "cancelled", reason: "as asked" })
              }
              break
            case "read":
              read()
              break
            case "cancel":
              yield* runs.cancel(run.id, "asked")
              break
            case "time passes":
              yield* TestClock.adjust("7 seconds")
              break
            case "deadline":
              yield* TestClock.adjust("301 seconds")
              break
            case "drain":
              yield* Effect.forkChild(runs.drain, { startImmediately: true })
              break
          }
          yield* turn
        }

        yield* runs.stop
        while (!reader.done()) read()
        const ends = seen.filter(
          (event) => event.type === "completed" || event.type === "failed" || event.type === "cancelled"
        )
        if (reader.failure() === undefined) {
          assert.strictEqual(ends.length, 1)
          assert.strictEqual(seen[seen.length - 1], ends[0])
        } else assert.strictEqual(ends.length, 0)
        const texts = seen.flatMap((event) => (event.type === "delta" && "text" in event ? [event.text] : []))
        const attempt = texts[0]?.split(":")[0]
        assert.deepStrictEqual(
          texts,
          texts.map((_, i) => `${attempt}:${i}`)
        )
        assert.isAtMost(seen.filter((event) => event.type === "started").length, 1)
        const final = yield* runs.get(run.id)
        // These nodes keep the rules: nobody may say that they broke one.
        assert.notStrictEqual(final.failure?.code, "protocol_error")
        assert.include(["completed", "failed", "cancelled"], final.phase)
        if (ends[0] !== undefined) assert.strictEqual(final.phase, ends[0].type)
        for (const node of nodes) cut(node, false)
        assert.deepStrictEqual(runs.counts(), { queued: 0, inFlight: 0 })
        for (const entry of registry.all()) assert.strictEqual(entry.slotsInUse, 0)
        assert.isFalse((yield* runs.get(run.id)).slotHeld)
      }).pipe(
        Effect.provide(
          fixture([record("a"), record("b")], {
            runWindowBytes: WINDOW_BYTES,
            relay: { logBytes: 1000, consumerMs: limits.relay.consumerMs }
          })
        )
      ),
    { arbitrary: { runs: 1000 } }
  )
})
