// Five hundred runs on four slots, cancelled in any phase and in any way: afterwards the books balance, each run has
// ended exactly once, and stream, record, metrics and node agree on how.
import { describe, expect, it } from "vitest"
import { mockNodeConfig } from "./harness/config.ts"
import { Random } from "./harness/Random.ts"
import type { RawNode } from "./harness/RawNode.ts"
import { useEdge } from "./harness/useEdge.ts"
import { inParallel } from "./harness/waiting.ts"

const RUNS = 500

describe("an edge whose callers cancel at random", () => {
  const shared = useEdge({
    nodes: [mockNodeConfig("tower", { slots: 4 })],
    runs: { queue_limit: 1000, cancel_timeout: "300ms", queue_timeout: "50s" },
    link: { resume_grace: "300ms" }
  })

  /** Plays each run: a few deltas with pauses of a turn or so, and the answers to cancels that a node may give. */
  const play = (node: RawNode, random: Random, ended: Map<string, number>) => {
    node.onRun = (run) => {
      const id = run.request.runId
      let over = false
      const end = (act: () => void) => {
        if (over) return
        over = true
        ended.set(id, (ended.get(id) ?? 0) + 1)
        act()
      }
      let left = random.below(6)
      const work = () => {
        if (over) return
        if (left-- > 0) {
          run.delta(`${left} `)
          setTimeout(work, random.below(8))
        } else end(() => (random.below(10) === 0 ? run.failed("by chance", false) : run.completed()))
      }
      run.onCancel = () => {
        const late = random.below(3)
        if (late === 0) end(() => run.stopped())
        else if (late === 1) setTimeout(() => end(() => run.stopped()), random.below(40))
        // Or it does not listen and works to its end.
      }
      const begin = () => {
        run.started()
        work()
      }
      if (random.below(5) === 0) setTimeout(begin, random.below(10))
      else begin()
    }
  }

  it.each([11, 4711])("with seed %i everything is given back and every run ended once", async (seed) => {
    const random = new Random(seed)
    const node = await shared.node("tower")
    const ended = new Map<string, number>()
    play(node, random, ended)
    const before = await shared.edge.metrics()
    const ids = await inParallel(Array.from({ length: RUNS }), 60, async () => {
      const way = random.below(6)
      const stream = await shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x" })
      const hangUp = random.below(2) === 0
      const stop = () => (hangUp ? stream.leave() : shared.edge.admin.cancel(stream.runId))
      if (way === 0) await stop()
      else if (way === 1) {
        await Promise.race([stream.until("dispatched").catch(() => undefined), stream.over])
        await stop()
      } else if (way === 2) {
        await Promise.race([stream.until("delta").catch(() => undefined), stream.over])
        await stop()
      } else if (way === 3) {
        await new Promise((resolve) => setTimeout(resolve, random.below(300)))
        await stop()
      } else if (way === 4) {
        await new Promise((resolve) => setTimeout(resolve, random.below(60)))
        await Promise.all([stop(), shared.edge.admin.cancel(stream.runId)])
      }
      await stream.over
      return stream.runId
    })
    expect(new Set(ids).size).toBe(RUNS)

    const after = await shared.edge.untilMetrics(
      "all runs over and all slots free",
      (metrics) =>
        metrics.sum("iop_edge_runs_in_flight") === 0 &&
        metrics.sum("iop_edge_runs_queued") === 0 &&
        metrics.sum("iop_edge_slots_in_use") === 0
    )
    const phases = new Map<string, number>()
    await inParallel(ids, 20, async (id) => {
      const [record, replay] = await Promise.all([shared.edge.admin.run(id), shared.edge.admin.watch(id)])
      // `finish` fails unless there is exactly one terminal event.
      const end = await replay.finish()
      expect(end.type, id).toBe(record.phase)
      expect(replay.events.at(-1), id).toBe(end)
      expect(record.slot_held, id).toBe(false)
      const outcome = record.failure?.code ?? record.phase
      phases.set(outcome, (phases.get(outcome) ?? 0) + 1)
    })
    const outcomes = ["completed", "cancelled", "adapter_error"]
    expect([...phases.keys()].filter((phase) => !outcomes.includes(phase))).toEqual([])
    expect(phases.get("cancelled") ?? 0).toBeGreaterThan(RUNS / 4)
    expect(phases.get("completed") ?? 0).toBeGreaterThan(0)
    for (const [outcome, count] of phases) {
      const labels = { adapter: "mock", outcome }
      expect(after.count("iop_edge_runs_total", labels) - before.count("iop_edge_runs_total", labels)).toBe(
        count
      )
    }
    const submitted = { adapter: "mock" }
    expect(
      after.count("iop_edge_runs_submitted_total", submitted) -
        before.count("iop_edge_runs_submitted_total", submitted)
    ).toBe(RUNS)
    // The node: no run twice, no run told to stop twice.
    const runs = [...node.runs.values()]
    expect(new Set(runs.map((run) => run.request.runId)).size).toBe(runs.length)
    const cancels = node.received.flatMap(({ body }) =>
      body.case === "runCancel" ? [body.value.handle] : []
    )
    expect(new Set(cancels).size).toBe(cancels.length)
    expect([...ended.values()].every((times) => times === 1)).toBe(true)
    const lines = shared.edge.log
      .filter(({ message }) => message === "run ended")
      .map(({ fields }) => fields.run)
    const mine = lines.filter((id) => ids.includes(String(id)))
    expect(mine.length).toBe(RUNS)
    expect(new Set(mine).size).toBe(RUNS)
  })
})
