// A million numbered events of real fake nodes through links that are cut, frozen, half lost, delayed and sliced at
// moments that a seed decides. Every event must come once, in its place and in its run.
// IOP_E2E_SEED=N plays another game; the seed of a failure is in the output.
import { countDelta } from "mock-node/scripts/count"
import { describe, expect, it } from "vitest"
import { ChaosProxy } from "./harness/ChaosProxy.ts"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { countPrompt } from "./harness/countText.ts"
import { MockNode } from "./harness/MockNode.ts"
import { Random } from "./harness/Random.ts"
import { readRun } from "./harness/readRun.ts"
import { useEdge } from "./harness/useEdge.ts"
import { within } from "./harness/waiting.ts"

const SEED = Number(process.env.IOP_E2E_SEED ?? 20_261_201)
const RUNS = 10
const TOKENS = 100_000
/** Events between two faults, at most; half of it on average. */
const EVENTS_BETWEEN = 60_000
const BOUND_MS = 150_000

const ids = ["tower", "laptop"]
const kinds = ["cut", "hole", "lost_up", "lost_down", "freeze", "slice", "delay"] as const
/** Resets are what costs least time and shows most. */
const dice = [...kinds, "cut", "cut", "cut"] as const
type Kind = (typeof kinds)[number]

describe("a million events", () => {
  const shared = useEdge({
    nodes: ids.map((id) => mockNodeConfig(id, { slots: RUNS / 2 })),
    // Silence is noticed within a second, and links of a fifth of a second are good enough to redial soon after.
    link: { heartbeat_interval: "100ms", suspect_after: 5, dead_after: 10, resume_grace: "60s" },
    // Faults before the first delta cost an attempt; here a run may not fail for that.
    runs: { max_attempts: 100 }
  })

  /** Commits one fault; those that pass by themselves do so after `ms`. */
  const commit = (kind: Kind, proxy: ChaosProxy, ms: number, random: Random) => {
    const passes = () => {
      const timer = setTimeout(() => proxy.thaw(), ms)
      shared.cleanup.defer(() => clearTimeout(timer))
    }
    switch (kind) {
      case "cut":
        return proxy.cut()
      case "hole":
        return proxy.blackhole("up", "down")
      case "lost_up":
        return proxy.blackhole("up")
      case "lost_down":
        return proxy.blackhole("down")
      case "freeze":
        proxy.freeze()
        return passes()
      case "slice":
        for (const weather of Object.values(proxy.weather)) weather.slice = 1 + random.below(1_000)
        return passes()
      case "delay":
        for (const weather of Object.values(proxy.weather)) weather.delayMs = random.below(100)
        return passes()
    }
  }

  it("survive random faults: none is lost, doubled or swapped", { timeout: BOUND_MS + 30_000 }, async () => {
    const random = new Random(SEED)
    const { cleanup, edge } = shared
    const proxies: Array<ChaosProxy> = []
    for (const id of ids) {
      const proxy = await ChaosProxy.open(cleanup, edge.nodes)
      new MockNode(cleanup, { edge: proxy.address, token: tokenOf(id), name: id })
      await edge.admin.untilNode(id, "routable")
      proxies.push(proxy)
    }
    const faults = new Map<Kind, number>()
    let events = 0
    let nextFault = 1 + random.below(EVENTS_BETWEEN)
    const wrong: Array<string> = []
    const counts = new Map<string, number>()
    // What comes late may come in larger pieces; each event ends with a space.
    const onText = (runId: string, text: string) => {
      const pieces = text.split(/(?<= )/)
      for (const piece of pieces) {
        const number = counts.get(runId) ?? 0
        const expected = countDelta(runId, number)
        if (piece !== expected && wrong.length < 10) wrong.push(`${runId}: ${piece} instead of ${expected}`)
        counts.set(runId, number + 1)
      }
      events += pieces.length
      if (events < nextFault) return
      nextFault = events + 1 + random.below(EVENTS_BETWEEN)
      // Each kind once, then as the dice fall.
      const kind = kinds[faults.size] ?? random.pick(dice)
      faults.set(kind, (faults.get(kind) ?? 0) + 1)
      commit(kind, random.pick(proxies), 20 + random.below(400), random)
    }
    const start = performance.now()
    const runs = []
    for (let i = 0; i < RUNS; i++) {
      const submission = { adapter: "mock", target: "count", prompt: countPrompt(TOKENS) }
      runs.push(
        await readRun(edge.admin, submission, ({ type, text }, runId) => {
          if (type === "delta") onText(runId, text ?? "")
        })
      )
    }
    const ends = await within("the end of all runs", Promise.all(runs.map(({ end }) => end)), BOUND_MS)
    const seconds = (performance.now() - start) / 1000
    const metrics = await edge.metrics()
    console.info(
      `seed ${SEED}: ${events} events in ${seconds.toFixed(1)} s, ${metrics.count("iop_edge_run_duplicate_events_total")} came again, ` +
        `${metrics.count("iop_edge_links_ended_total")} links ended; faults: ${JSON.stringify(Object.fromEntries(faults))}`
    )
    expect(wrong).toEqual([])
    expect(ends.map(({ type }) => type)).toEqual(runs.map(() => "completed"))
    expect(runs.map(({ runId }) => counts.get(runId))).toEqual(runs.map(() => TOKENS))
    expect(events).toBe(RUNS * TOKENS)
    expect(faults.size).toBe(kinds.length)
    expect(metrics.count("iop_edge_links_ended_total")).toBeGreaterThanOrEqual(4)
    expect(
      edge.log.some(({ message, fields }) => message === "node registered" && Number(fields.resumed) > 0)
    ).toBe(true)
    for (const { runId } of runs) expect((await edge.admin.run(runId)).phase).toBe("completed")
  })
})
