// The run service over fake nodes and a virtual clock.
import { chatInput } from "@iop/platform-common/protocol/runInputText"
import { Effect, Layer } from "effect"
import { NodeConfigs } from "../src/node/NodeConfigs.ts"
import type { NodeRecord } from "../src/node/NodeRecord.ts"
import { NodeRegistry } from "../src/node/NodeRegistry.ts"
import { makeNodeStore, NodeStore } from "../src/node/NodeStore.ts"
import { Timers } from "../src/node/Timers.ts"
import type { RunEvent } from "../src/run/RunEvent.ts"
import type { RunServiceLimits } from "../src/run/RunLimits.ts"
import type { RunReader } from "../src/run/RunReader.ts"
import { RunService } from "../src/run/RunService.ts"
import type { RunSpec } from "../src/run/RunSpec.ts"
import { circuitLimits } from "./fakeNodes.ts"

export const limits: RunServiceLimits = {
  queueMs: 60_000,
  firstEventMs: 120_000,
  idleMs: 120_000,
  totalMs: undefined,
  cancelMs: 5000,
  resumeGraceMs: 30_000,
  maxAttempts: 3,
  runWindowBytes: 4096,
  relay: { logBytes: 16_384, consumerMs: 30_000 },
  heapBytes: 1 << 30,
  queueLimit: 100,
  history: 1000,
  fastFailureMs: 1000
}

/** Registry and runs over the records. */
export const fixture = (records: ReadonlyArray<NodeRecord>, change: Partial<RunServiceLimits> = {}) =>
  RunService.layer({ ...limits, ...change }).pipe(
    Layer.provideMerge(NodeRegistry.layer(circuitLimits)),
    Layer.provideMerge(NodeConfigs.layer),
    Layer.provideMerge(Layer.sync(NodeStore, () => makeNodeStore(records))),
    Layer.provideMerge(Timers.layer)
  )

export const spec = (change: Partial<RunSpec> = {}): RunSpec => ({
  adapter: "mock",
  target: "echo",
  input: chatInput("hello"),
  caller: "test",
  ...change
})

/** Submits and fails the test when the run is refused. */
export const submit = (change: Partial<RunSpec> = {}) => RunService.use((runs) => runs.submit(spec(change)))

/** Everything that the reader has now. */
export const read = (reader: RunReader): ReadonlyArray<RunEvent> => {
  const all: Array<RunEvent> = []
  while (true) {
    const events = reader.take()
    if (events.length === 0) return all
    all.push(...events.map((relayed) => relayed.event))
  }
}

export const types = (events: ReadonlyArray<RunEvent>): ReadonlyArray<string> =>
  events.map((event) => event.type)

/** Lets work that was put off to the end of the turn happen. */
export const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
