// What must hold after every case, whatever was done to the edge: it is the same process, it has not complained about
// itself, everything that was claimed is given back, and it still works.
import { expect } from "vitest"
import type { EdgeProcess } from "./EdgeProcess.ts"
import { RawNode, type RegisterOptions } from "./RawNode.ts"

const gauges = ["iop_edge_runs_in_flight", "iop_edge_slots_in_use", "iop_edge_runs_queued"]

const complaints = /unhandled|uncaught|MaxListenersExceeded|ERR_UNHANDLED|at .*\.ts:\d+:\d+/i

export interface BooksOptions {
  /** A node of the configuration that nobody uses: it registers afresh and completes a run. */
  readonly spare: RegisterOptions & {
    readonly id: string
    readonly adapter: string
    readonly target: string
    readonly labels?: Readonly<Record<string, string>>
  }
}

/** Fails when the books do not balance. */
export const expectBalancedBooks = async (edge: EdgeProcess, { spare }: BooksOptions): Promise<void> => {
  expect(edge.exit, `the edge has ended:\n${edge.tail}`).toBeUndefined()
  await edge.untilMetrics("all gauges back to 0", (metrics) =>
    gauges.every((name) => metrics.sum(name) === 0)
  )
  await using cleanup = new AsyncDisposableStack()
  const node = await RawNode.register(cleanup, edge.nodes, {
    ...spare,
    offers: { [spare.adapter]: [spare.target] }
  })
  await edge.admin.untilNode(spare.id, "routable")
  node.onRun = (run) => run.answer("fresh ", "run")
  const stream = await edge.admin.stream({
    adapter: spare.adapter,
    target: spare.target,
    prompt: "are you well?",
    ...(spare.labels === undefined ? {} : { labels: spare.labels })
  })
  expect((await stream.finish()).type).toBe("completed")
  expect(stream.text).toBe("fresh run")
  node.send({ case: "goodbye", value: { code: 1, message: "the books are done" } })
  node.close()
  await edge.admin.untilNode(spare.id, "offline")
  const ends = edge.log.filter(
    ({ message, fields }) => message === "run ended" && fields.run === stream.runId
  )
  expect(ends.map(({ line }) => line)).toHaveLength(1)
  expect(edge.stderr.filter((line) => complaints.test(line))).toEqual([])
  const metrics = await edge.metrics()
  for (const sample of metrics.samples) {
    if (sample.name.startsWith("iop_edge_")) expect(sample.value, sample.name).toBeGreaterThanOrEqual(0)
  }
}
