// What the callers of a soak saw, against which the edge's own books are held at its end: each run that was accepted,
// how it ended for its caller, and everything that should never have been seen.

/** Ends of runs that the faults of a soak may cause. Anything else is a finding. */
const expected: ReadonlySet<string> = new Set([
  "completed",
  "cancelled",
  "node_lost",
  "adapter_error",
  "slow_consumer",
  "no_node_available",
  "queue_full",
  "queue_timeout"
])

/** Findings that are kept word for word; more of them say nothing new. */
const MAX_FINDINGS = 50

export class Ledger {
  /** Runs that the edge accepted. */
  readonly accepted = new Set<string>()
  /** Runs by how they ended: completed, cancelled or a failure code. */
  readonly outcomes = new Map<string, number>()
  /** Refusals by their code. */
  readonly refusals = new Map<string, number>()
  readonly faults = new Map<string, number>()
  readonly findings: Array<string> = []
  /** Events that callers received. */
  events = 0
  #findings = 0

  accept(runId: string): void {
    if (this.accepted.has(runId)) this.finding(`run id ${runId} was given twice`)
    this.accepted.add(runId)
  }

  ended(runId: string, outcome: string): void {
    count(this.outcomes, outcome)
    if (!expected.has(outcome)) this.finding(`run ${runId} ended with ${outcome}, which no fault explains`)
  }

  refused(code: string): void {
    count(this.refusals, code)
    if (!expected.has(code)) this.finding(`a run was refused with ${code}, which no fault explains`)
  }

  committed(fault: string): void {
    count(this.faults, fault)
  }

  /** Something that must never happen. */
  finding(what: string): void {
    this.#findings += 1
    if (this.findings.length < MAX_FINDINGS) this.findings.push(what)
  }

  /** How often something happened that must never happen. */
  get findingCount(): number {
    return this.#findings
  }
}

const count = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
