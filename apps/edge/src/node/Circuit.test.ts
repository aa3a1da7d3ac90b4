import { assert, it } from "@effect/vitest"
import { describe } from "vitest"
import { Circuit } from "./Circuit.ts"

const limits = { failures: 3, windowMs: 1000, openForMs: 5000 }

const opened = (): Circuit => {
  const circuit = new Circuit(limits)
  for (const at of [0, 1, 2]) circuit.failedFast(at, false, "boom")
  return circuit
}

describe("a circuit", () => {
  it("opens after enough fast failures within the window, not before", () => {
    const circuit = new Circuit(limits)
    assert.isUndefined(circuit.failedFast(0, false, "boom"))
    assert.isUndefined(circuit.failedFast(500, false, "boom"))
    assert.isUndefined(circuit.failedFast(1200, false, "boom"))
    assert.strictEqual(circuit.at(1200).state, "closed")
    assert.strictEqual(circuit.failedFast(1300, false, "boom"), 5000)
    assert.deepStrictEqual(circuit.at(1300), { state: "open", retryInMs: 5000, reason: "boom" })
  })

  it("forgets failures at a success", () => {
    const circuit = new Circuit(limits)
    circuit.failedFast(0, false, "boom")
    circuit.failedFast(1, false, "boom")
    circuit.succeeded()
    circuit.failedFast(2, false, "boom")
    assert.strictEqual(circuit.at(2).state, "closed")
  })

  it("lets one run try when its time is over, and closes when that succeeds", () => {
    const circuit = opened()
    assert.isFalse(circuit.dispatched(100))
    assert.strictEqual(circuit.at(5002).state, "half_open")
    assert.isTrue(circuit.dispatched(5002))
    assert.strictEqual(circuit.at(5002).state, "probing")
    circuit.succeeded()
    assert.strictEqual(circuit.at(5002).state, "closed")
  })

  it("stays open for longer each time a probe fails, to a bound", () => {
    const circuit = opened()
    let now = 5002
    const waits: Array<number> = []
    for (let i = 0; i < 6; i++) {
      circuit.dispatched(now)
      const wait = circuit.failedFast(now, true, "still") ?? 0
      waits.push(wait)
      now += wait
    }
    assert.deepStrictEqual(waits, [10_000, 20_000, 40_000, 80_000, 80_000, 80_000])
  })

  it("may be probed again when a probe says nothing", () => {
    const circuit = opened()
    circuit.dispatched(5002)
    circuit.probeEndedOpen()
    assert.strictEqual(circuit.at(5002).state, "half_open")
  })

  it("ignores failures of runs that were under way when it opened", () => {
    const circuit = opened()
    assert.isUndefined(circuit.failedFast(3, false, "late"))
    assert.deepInclude(circuit.at(3), { state: "open", retryInMs: 4999 })
  })
})
