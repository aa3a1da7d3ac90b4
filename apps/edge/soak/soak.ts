// A soak: an edge with a few nodes behind bad networks, callers that never rest, faults from a seed for as long as it is
// told to, and at the end the books, which have to balance to the last run and event.
import { mockNodeConfig } from "../e2e/harness/config.ts"
import { EdgeProcess } from "../e2e/harness/EdgeProcess.ts"
import { Random } from "../e2e/harness/Random.ts"
import { eventually, inParallel } from "../e2e/harness/waiting.ts"
import { CONSUMER_TIMEOUT_MS, call } from "./callers.ts"
import { Ledger } from "./Ledger.ts"
import { type MemorySample, memorySlope } from "./memorySlope.ts"
import { HEARTBEAT_MS, RESUME_GRACE_MS, SoakNode } from "./SoakNode.ts"

export interface SoakOptions {
  readonly minutes: number
  readonly seed: number
  /** Told about the progress, some lines a minute. */
  readonly say: (line: string) => void
}

export interface SoakResult {
  readonly runs: number
  readonly events: number
  readonly outcomes: ReadonlyMap<string, number>
  readonly refusals: ReadonlyMap<string, number>
  readonly faults: ReadonlyMap<string, number>
  /** Resident memory of the edge over its second half, in MB per ten minutes. */
  readonly slopeMb: number
  readonly peakMb: number
  /** What must not have happened; empty when the books balance. */
  readonly findings: ReadonlyArray<string>
}

const NODES = ["tower", "laptop", "server", "mac"]
const CALLERS = 24
/** Between two faults, wherever they hit, at most. */
const FAULT_EVERY_MS = 700
const SAMPLE_MS = 1_000
/** A node that was away for long dials slowly. */
const ALL_BACK_MS = 90_000

export const soak = async ({ minutes, seed, say }: SoakOptions): Promise<SoakResult> => {
  await using cleanup = new AsyncDisposableStack()
  const random = new Random(seed)
  const ledger = new Ledger()
  const edge = await EdgeProcess.start(cleanup, {
    nodes: NODES.map((id) =>
      mockNodeConfig(id, {
        adapters: [
          { name: "mock", type: "mock", slots: 6 },
          { name: "flaky", type: "mock", slots: 2 }
        ]
      })
    ),
    link: { heartbeat_interval: `${HEARTBEAT_MS}ms`, resume_grace: `${RESUME_GRACE_MS}ms` },
    runs: {
      consumer_timeout: `${CONSUMER_TIMEOUT_MS}ms`,
      queue_timeout: "20s",
      queue_limit: 1_000,
      // A run that is left to itself is asked for later, when hundreds of others have ended.
      history: 20_000,
      circuit: { open_for: "500ms" }
    },
    log: { level: "info" }
  })
  const nodes = await Promise.all(NODES.map((id) => SoakNode.join(cleanup, edge, id)))
  for (const id of NODES) await edge.admin.untilNode(id, "routable")

  const end = performance.now() + minutes * 60_000
  const left = () => end - performance.now()
  const pause = (ms: number) =>
    new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, Math.min(ms, left()))))
  const memory: Array<MemorySample> = []
  const watching = (async () => {
    const started = performance.now()
    for (let tick = 0; left() > 0; tick++) {
      memory.push({ ms: performance.now() - started, bytes: edge.memory })
      if (tick % 15 === 14) {
        say(
          `${Math.ceil(left() / 1_000)} s left: ${ledger.accepted.size} runs, ${ledger.findingCount} findings`
        )
      }
      await pause(SAMPLE_MS)
    }
  })()
  const suffering = (async () => {
    const pending = new Set<Promise<void>>()
    while (left() > 0) {
      const victim = random.pick(nodes)
      // Each fault has randomness of its own, so that its course depends on the seed and not on the others.
      const own = new Random(random.below(2 ** 31))
      const fault = victim.suffer(own, pause, (name) => ledger.committed(name))
      pending.add(fault)
      void fault.finally(() => pending.delete(fault))
      await pause(random.below(FAULT_EVERY_MS))
    }
    await Promise.all(pending)
  })()
  const calling = inParallel(Array.from({ length: CALLERS }), CALLERS, async (_, caller) => {
    const own = new Random(seed * 1_000 + caller)
    while (left() > 0) await call({ edge, ledger, random: own })
  })
  await Promise.all([watching, suffering, calling])
  for (const node of nodes) node.mend()
  say("the faults are over, the books follow")
  await closeBooks(edge, ledger)
  return {
    runs: ledger.accepted.size,
    events: ledger.events,
    outcomes: ledger.outcomes,
    refusals: ledger.refusals,
    faults: ledger.faults,
    slopeMb: memorySlope(memory),
    peakMb: Math.max(...memory.map(({ bytes }) => bytes)) / 1024 / 1024,
    findings: ledger.findings
  }
}

/** Holds the edge's books against the ledger. */
const closeBooks = async (edge: EdgeProcess, ledger: Ledger): Promise<void> => {
  const must = (what: string, holds: boolean) => {
    if (!holds) ledger.finding(what)
  }
  if (edge.exit !== undefined) {
    ledger.finding(`the edge has ended with ${JSON.stringify(edge.exit)}:\n${edge.tail}`)
    return
  }
  const zero = ["iop_edge_runs_in_flight", "iop_edge_runs_queued", "iop_edge_slots_in_use"]
  const tried = async (what: string, work: () => Promise<unknown>) => {
    try {
      await work()
    } catch (error) {
      ledger.finding(`${what}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  await tried("the gauges", () =>
    edge.untilMetrics("all gauges back to zero", (metrics) => zero.every((name) => metrics.sum(name) === 0))
  )
  const metrics = await edge.metrics()
  const submitted = metrics.count("iop_edge_runs_submitted_total")
  const ended = metrics.count("iop_edge_runs_total")
  const runs = ledger.accepted.size
  must(`${runs} runs were accepted, the metrics say ${submitted} submitted`, submitted === runs)
  must(`${runs} runs were accepted, the metrics say ${ended} ended`, ended === runs)
  for (const [outcome, count] of ledger.outcomes) {
    const counted = metrics.count("iop_edge_runs_total", { outcome })
    must(`${count} runs were seen to end with ${outcome}, the metrics say ${counted}`, counted === count)
  }
  for (const { name, value } of metrics.samples) {
    if (name.startsWith("iop_edge_")) must(`${name} is ${value}`, value >= 0)
  }
  must("a node of ours broke the protocol", metrics.count("iop_edge_link_protocol_errors_total") === 0)
  must("an event was forged", metrics.count("iop_edge_link_stray_events_total", { kind: "forged" }) === 0)
  const lines = new Map<string, number>()
  for (const { fields, message } of edge.log) {
    if (message === "run ended") lines.set(String(fields.run), (lines.get(String(fields.run)) ?? 0) + 1)
    must(`the edge complained: ${message}`, fields.level !== "error" && fields.level !== "fatal")
  }
  for (const id of ledger.accepted)
    must(`run ${id} has ${lines.get(id) ?? 0} closing lines`, lines.get(id) === 1)
  must(`${lines.size} runs have closing lines, ${runs} were accepted`, lines.size === runs)
  for (const line of edge.stderr) {
    must(`the edge complained: ${line}`, !/unhandled|uncaught|MaxListenersExceeded/i.test(line))
  }
  for (const id of NODES) {
    await tried(`node ${id}`, () => edge.admin.untilNode(id, "routable", ALL_BACK_MS))
  }
  await tried("a fresh run", async () => {
    const stream = await edge.admin.stream({ adapter: "mock", target: "echo", prompt: "are you well?" })
    const { type } = await stream.finish()
    must(`a fresh run ended with ${type}`, type === "completed" && stream.text === "are you well?")
  })
  await tried("the end", async () => {
    const { code } = await eventually("the edge to end", () => edge.stop("SIGTERM"))
    must(`the edge ended with ${code}`, code === 0)
  })
}
