import { assert, it } from "@effect/vitest"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { Effect, Schema } from "effect"
import { describe } from "vitest"
import { initialState, type MachineAction, type MachineInput, type RunState, step } from "./runMachine.ts"

const events: Record<string, NodeRunEvent> = {
  started: { type: "started" },
  delta: { type: "delta", choice: 0, kind: "text", text: "x" },
  usage: { type: "usage", usage: { outputTokens: 1 } },
  completed: { type: "completed", finishReason: "stop" },
  failed: { type: "failed", code: "adapter_error", message: "no", retryable: false },
  retryable: { type: "failed", code: "adapter_error", message: "busy", retryable: true },
  cancelled: { type: "cancelled", reason: "as asked" }
}

const inputs: Record<string, MachineInput> = {
  granted: { type: "granted" },
  ...Object.fromEntries(Object.entries(events).map(([name, event]) => [name, { type: "event", event }])),
  violation: { type: "violation", message: "gap" },
  lost: { type: "link_lost", reason: "reset", mayResume: true },
  gone: { type: "link_lost", reason: "shutdown", mayResume: false },
  resumed: { type: "resumed" },
  notResumed: { type: "not_resumed", reason: "new process" },
  cancel: { type: "cancel", reason: "asked" },
  neverLeft: { type: "never_left" },
  neverSent: { type: "never_sent", message: "too large" },
  slow: { type: "slow_consumer", message: "slow" },
  drain: { type: "drain" },
  stop: { type: "stop" },
  ...Object.fromEntries(
    (["queue", "first_event", "idle", "total", "cancel", "grace"] as const).map((clock) => [
      `clock ${clock}`,
      { type: "clock", clock, measuredMs: 1, detail: `${clock} ran out` }
    ])
  )
}
const names = Object.keys(inputs)

interface Played {
  readonly state: RunState
  readonly actions: ReadonlyArray<MachineAction>
  /** The events that consumers saw, by attempt. */
  readonly seen: ReadonlyArray<{ readonly attempt: number; readonly type: string }>
}

/** Plays inputs with a small model of what the run does with the actions. */
const play = (steps: ReadonlyArray<{ readonly name: string; readonly failover: boolean }>): Played => {
  let state = initialState
  let attempt = 0
  let held: Array<string> = []
  const actions: Array<MachineAction> = []
  const seen: Array<{ attempt: number; type: string }> = []
  for (const { name, failover } of steps) {
    const input = inputs[name]!
    if (input.type === "granted" && state.phase === "queued") attempt += 1
    const result = step(state, input, { node: "gpu-1", mayFailOver: () => failover })
    state = result.state
    for (const action of result.actions) {
      actions.push(action)
      if (action.do === "hold") held.push(action.event.type)
      if (action.do === "requeue") held = []
      if (action.do === "relay") {
        for (const type of [...held, action.event.type]) seen.push({ attempt, type })
        held = []
      }
    }
  }
  return { state, actions, seen }
}

const Steps = Schema.Array(Schema.Struct({ name: Schema.Literals(names), failover: Schema.Boolean }))

describe("the state machine of a run", () => {
  it.effect.prop(
    "ends at most once, whatever happens in whatever order",
    { steps: Steps },
    ({ steps }) =>
      Effect.sync(() => {
        const { state, actions } = play(steps)
        const finishes = actions.filter((action) => action.do === "finish")
        assert.strictEqual(finishes.length, state.phase === "final" ? 1 : 0)
        const afterFinish = actions.slice(actions.findIndex((action) => action.do === "finish") + 1)
        if (finishes.length > 0) assert.deepStrictEqual(afterFinish, [])
      }),
    { arbitrary: { runs: 2000 } }
  )

  it.effect.prop(
    "shows consumers the events of one attempt only",
    { steps: Steps },
    ({ steps }) =>
      Effect.sync(() => {
        const { seen } = play(steps)
        assert.isAtMost(new Set(seen.map((event) => event.attempt)).size, 1)
        if (seen.length > 0) assert.strictEqual(seen[0]?.type, "started")
        assert.isAtMost(seen.filter((event) => event.type === "started").length, 1)
      }),
    { arbitrary: { runs: 2000 } }
  )

  it.effect.prop(
    "always can be ended: cancel and its clock, or stop, from any state",
    { steps: Steps },
    ({ steps }) =>
      Effect.sync(() => {
        const cancelled = play([
          ...steps,
          { name: "cancel", failover: true },
          { name: "clock cancel", failover: true }
        ])
        assert.strictEqual(cancelled.state.phase, "final")
        assert.strictEqual(play([...steps, { name: "stop", failover: true }]).state.phase, "final")
      }),
    { arbitrary: { runs: 1000 } }
  )

  it.effect.prop(
    "never leaves a node working unnoticed: an attempt ends, or the node is told to stop",
    { steps: Steps },
    ({ steps }) =>
      Effect.sync(() => {
        const { state, actions } = play(steps)
        if (state.phase !== "final") return
        const granted = play(steps).actions
        const last = granted[granted.length - 1]
        assert.strictEqual(last?.do, "finish")
        // Every attempt that began has one of the two before the end.
        const begun = countGranted(steps)
        const closed = actions.filter(
          (action) => action.do === "end_attempt" || action.do === "cancel_node"
        ).length
        assert.isAtLeast(closed, begun)
      }),
    { arbitrary: { runs: 2000 } }
  )

  const row = (title: string, path: ReadonlyArray<string>, failover: boolean, expected: string) =>
    it(title, () => {
      const { state, actions } = play(path.map((name) => ({ name, failover })))
      const last = state.phase === "final" ? state.outcome : undefined
      const outcome =
        last === undefined ? state.phase : last.type === "failed" ? last.failure.code : last.type
      const doing = actions.map((action) => action.do).join(" ")
      assert.strictEqual(`${outcome}: ${doing}`, expected)
    })

  row(
    "completes",
    ["granted", "started", "delta", "completed"],
    true,
    "completed: hold relay relay end_attempt finish"
  )
  row(
    "fails over before a delta",
    ["granted", "started", "retryable"],
    true,
    "queued: hold end_attempt requeue"
  )
  row(
    "does not fail over after a delta",
    ["granted", "started", "delta", "retryable"],
    true,
    "adapter_error: hold relay end_attempt finish"
  )
  row(
    "does not fail over when nobody else could",
    ["granted", "retryable"],
    false,
    "adapter_error: end_attempt finish"
  )
  row(
    "waits for a node that may come back when nobody else could",
    ["granted", "lost"],
    false,
    "dispatched: "
  )
  row("fails over at once when somebody else can", ["granted", "lost"], true, "queued: end_attempt requeue")
  row("waits in mid-stream", ["granted", "started", "delta", "lost"], true, "streaming: hold relay")
  row(
    "ends when a node goes for good in mid-stream",
    ["granted", "started", "delta", "gone"],
    true,
    "node_lost: hold relay end_attempt finish"
  )
  row(
    "ends when the grace ends",
    ["granted", "started", "delta", "lost", "clock grace"],
    true,
    "node_lost: hold relay end_attempt finish"
  )
  row(
    "goes on after a resume",
    ["granted", "started", "delta", "lost", "resumed", "delta", "completed"],
    true,
    "completed: hold relay relay relay end_attempt finish"
  )
  row(
    "cancel waits for the node",
    ["granted", "cancel", "cancelled"],
    true,
    "cancelled: cancel_node end_attempt finish"
  )
  row(
    "cancel does not wait for ever",
    ["granted", "cancel", "clock cancel"],
    true,
    "cancelled: cancel_node finish"
  )
  row(
    "cancel of a lost run is final at once",
    ["granted", "started", "delta", "lost", "cancel"],
    true,
    "cancelled: hold relay end_attempt finish"
  )
  row(
    "a completion that crosses a cancel is a cancel",
    ["granted", "started", "delta", "cancel", "completed"],
    true,
    "cancelled: hold relay cancel_node end_attempt finish"
  )
  row(
    "a node that cancels by itself is at fault",
    ["granted", "started", "cancelled"],
    true,
    "adapter_error: hold end_attempt finish"
  )
  row("a drain does not touch a running run", ["granted", "started", "drain"], true, "started: hold")
  row("a drain ends a waiting run", ["drain"], true, "draining: finish")
})

const countGranted = (
  steps: ReadonlyArray<{ readonly name: string; readonly failover: boolean }>
): number => {
  let state = initialState
  let begun = 0
  for (const { name, failover } of steps) {
    if (name === "granted" && state.phase === "queued") begun += 1
    state = step(state, inputs[name]!, { node: "gpu-1", mayFailOver: () => failover }).state
  }
  return begun
}
