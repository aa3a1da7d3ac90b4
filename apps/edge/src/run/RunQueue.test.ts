import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { describe } from "vitest"
import { RunQueue, type Waiting } from "./RunQueue.ts"

const run = (name: string, target = "echo", signature = target): Waiting & { readonly name: string } => ({
  name,
  adapter: "mock",
  target,
  signature
})

const offered = (queue: RunQueue<ReturnType<typeof run>>, take: (name: string) => boolean) => {
  const asked: Array<string> = []
  queue.offer("mock", ({ name }) => {
    asked.push(name)
    return take(name)
  })
  return asked
}

describe("the queue", () => {
  it("is first in, first out, and what runs again goes first", () => {
    const queue = new RunQueue<ReturnType<typeof run>>(10)
    for (const name of ["a", "b"]) queue.add(run(name), false)
    queue.add(run("again"), true)
    assert.deepStrictEqual(
      offered(queue, () => true),
      ["again", "a", "b"]
    )
    assert.strictEqual(queue.size, 0)
  })

  it("asks once for runs that fit the same nodes when there is no slot", () => {
    const queue = new RunQueue<ReturnType<typeof run>>(10)
    queue.add(run("a"), false)
    queue.add(run("b"), false)
    queue.add(run("c", "lorem"), false)
    assert.deepStrictEqual(
      offered(queue, (name) => name === "c"),
      ["a", "c"]
    )
    assert.strictEqual(queue.size, 2)
  })

  it("counts and bounds per adapter and target", () => {
    const queue = new RunQueue<ReturnType<typeof run>>(2)
    const second = run("b")
    queue.add(run("a"), false)
    queue.add(second, false)
    queue.add(run("c", "lorem"), false)
    assert.isTrue(queue.isFull("mock", "echo"))
    assert.isFalse(queue.isFull("mock", "lorem"))
    assert.strictEqual(queue.ahead(second), 1)
    assert.isTrue(queue.remove(second))
    assert.isFalse(queue.remove(second))
    assert.isFalse(queue.isFull("mock", "echo"))
  })

  it.effect.prop(
    "keeps its counts whatever is added, removed and taken",
    { steps: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 }))) },
    ({ steps }) =>
      Effect.sync(() => {
        const queue = new RunQueue<ReturnType<typeof run>>(1000)
        const waiting: Array<ReturnType<typeof run>> = []
        for (const [i, step] of steps.entries()) {
          if (step < 10) {
            const next = run(String(i), step % 2 === 0 ? "echo" : "lorem")
            queue.add(next, false)
            waiting.push(next)
          } else if (step < 15) {
            const gone = waiting.splice(step % Math.max(1, waiting.length), 1)[0]
            if (gone !== undefined) assert.isTrue(queue.remove(gone))
          } else {
            const first = waiting.find((other) => other.target === "echo")
            let taken: Waiting | undefined
            queue.offer("mock", (candidate) => {
              if (candidate.target !== "echo" || taken !== undefined) return false
              taken = candidate
              return true
            })
            assert.strictEqual(taken, first)
            if (first !== undefined) waiting.splice(waiting.indexOf(first), 1)
          }
        }
        assert.strictEqual(queue.size, waiting.length)
        assert.strictEqual(
          queue.count("mock", "echo"),
          waiting.filter((other) => other.target === "echo").length
        )
        assert.deepStrictEqual(queue.all(), waiting)
      }),
    { arbitrary: { runs: 300 } }
  )
})
