// The plain half of the run service: submission, dispatch, failover and resumption over the registry's entries.
import { Deferred, Effect } from "effect"
import type { NodeEntry } from "../node/NodeEntry.ts"
import type { NodeLink } from "../node/NodeLink.ts"
import type { NodeRegistry } from "../node/NodeRegistry.ts"
import {
  describeReason,
  isPassing,
  type Selection,
  type SelectionClock,
  type SelectionNeed,
  select
} from "../node/selection.ts"
import type { Timers } from "../node/Timers.ts"
import type { Attempt } from "./Attempt.ts"
import type { Explanation } from "./Explanation.ts"
import type { HeldRunAnswer, HeldRunClaim } from "./HeldRun.ts"
import { inputBytes } from "./inputBytes.ts"
import { RelayBudget } from "./RelayBudget.ts"
import { Run } from "./Run.ts"
import { type RunFailure, RunNotFound, RunRefused, TooLate } from "./RunFailure.ts"
import { RunHistory } from "./RunHistory.ts"
import type { RunHost } from "./RunHost.ts"
import type { RunServiceLimits } from "./RunLimits.ts"
import type { RunObserver } from "./RunObserver.ts"
import type { RunOperations } from "./RunOperations.ts"
import { RunQueue } from "./RunQueue.ts"
import type { NodeVerdict, RunSpec } from "./RunSpec.ts"
import type { RunTracing } from "./RunTracing.ts"
import { drainingFailure, refusal, tooManyRuns, tooMuchInput } from "./refusal.ts"
import { newRunId } from "./runId.ts"
import { SessionAffinity } from "./SessionAffinity.ts"
import { watchCircuits } from "./watchCircuits.ts"

/** Up to so many nodes the verdicts are kept as sentences; above it only as reasons, which costs nothing per dispatch. */
const SENTENCES_UP_TO = 32

/**
 * A few events are acknowledged after this time, in milliseconds: a node whose next event does not fit its window waits
 * no longer than that, and a thousand chats cost ten acknowledgements a second each at most.
 */
const LATE_ACK_MS = 100

const DEFAULT_LIST = 50

/** Everything of the run service but its streams. */
export const makeRunService = (
  registry: NodeRegistry["Service"],
  timers: Timers["Service"],
  observer: RunObserver,
  tracing: RunTracing,
  limits: RunServiceLimits
): RunOperations & { readonly close: () => void } => {
  const queue = new RunQueue<Run>(limits.queueLimit)
  const history = new RunHistory(limits.history)
  const affinity = new SessionAffinity()
  /** Accepted runs that are not final. */
  const live = new Set<Run>()
  /** Runs that are over but whose node has not answered: their slots are still taken. */
  const orphaned = new Set<Run>()
  const budget = new RelayBudget(limits.heapBytes, limits.relay, limits.runWindowBytes, () => live.size)
  /** Attempts with events that are worth no acknowledgement of their own. */
  const unacknowledged = new Set<Attempt>()
  let dispatches = 0
  /** Bytes of the inputs of all live runs. */
  let inputs = 0
  let draining = false
  let pumpScheduled = false
  const idle: Array<() => void> = []

  const clock = (): SelectionClock => ({ now: timers.now(), resumeGraceMs: limits.resumeGraceMs })

  const needOf = (
    spec: Pick<RunSpec, "adapter" | "target" | "labels" | "session">,
    excluded?: ReadonlySet<string>
  ): SelectionNeed => ({
    adapter: spec.adapter,
    target: spec.target,
    labels: spec.labels,
    preferred: spec.session === undefined ? undefined : affinity.get(spec.adapter, spec.target, spec.session),
    excluded
  })

  const verdicts = (
    need: SelectionNeed,
    selection: Selection,
    at: SelectionClock
  ): ReadonlyArray<NodeVerdict> =>
    registry.all().map((entry, index) => {
      const reason = selection.reasons[index] ?? "no_adapter"
      return {
        node: entry.record.id,
        alias: entry.record.alias,
        chosen: reason === "chosen",
        reason,
        message: describeReason(entry, need, reason, at)
      }
    })

  /** The verdicts as they are now, or, for large groups, as they will be described when somebody asks. */
  const remember = (run: Run, need: SelectionNeed, selection: Selection, at: SelectionClock) => {
    if (selection.reasons.length <= SENTENCES_UP_TO) {
      const now = verdicts(need, selection, at)
      run.selection = () => now
    } else {
      run.selection = () => verdicts(need, selection, at)
    }
  }

  const dispatchTo = (
    run: Run,
    need: SelectionNeed,
    entry: NodeEntry,
    selection: Selection,
    at: SelectionClock
  ): boolean => {
    const link = entry.link
    remember(run, need, selection, at)
    dispatches += 1
    const claim = entry.claim(run.adapter, at.now, dispatches)
    if (link === undefined || claim === undefined) return false
    if (run.spec.session !== undefined)
      affinity.set(run.adapter, run.target, run.spec.session, entry.record.id)
    if (claim.probe) registry.touch(entry, "circuit")
    run.dispatch(claim, link)
    observer.dispatched(run.adapter, entry.record.alias, run.queueMs)
    return true
  }

  const tryDispatch = (run: Run): boolean => {
    const need = needOf(run.spec, run.excluded)
    const at = clock()
    const selection = select(registry.all(), need, at)
    if (selection.chosen === undefined) {
      remember(run, need, selection, at)
      return false
    }
    return dispatchTo(run, need, selection.chosen, selection, at)
  }

  /** Gives waiting runs what became free, at the end of the present turn: a link that is going down is gone by then. */
  const pump = () => {
    if (pumpScheduled || queue.size === 0) return
    pumpScheduled = true
    queueMicrotask(() => {
      pumpScheduled = false
      for (const adapter of [...queue.adapters]) queue.offer(adapter, tryDispatch)
    })
  }
  const unwatch = registry.watch(pump)

  const circuits = watchCircuits(registry, timers, observer, limits.fastFailureMs)

  const acknowledgeAll = () => {
    const attempts = [...unacknowledged]
    unacknowledged.clear()
    for (const attempt of attempts) attempt.acknowledge(true)
  }

  const host: RunHost = {
    limits: { ...limits, relay: budget.limits },
    now: timers.now,
    after: timers.after,
    hasAlternative: (run, node, connected) => {
      const excluded = new Set(run.excluded).add(node)
      const selection = select(registry.all(), needOf(run.spec, excluded), clock())
      return (
        selection.chosen !== undefined ||
        selection.reasons.some((reason) => isPassing(reason) && !(connected && reason === "reconnecting"))
      )
    },
    reconsider: (run) => {
      const need = needOf(run.spec, run.excluded)
      const at = clock()
      const selection = select(registry.all(), need, at)
      remember(run, need, selection, at)
      return selection.chosen !== undefined || selection.reasons.some(isPassing)
    },
    enqueue: (run, again) => {
      queue.add(run, again)
      pump()
    },
    dequeue: (run) => {
      queue.remove(run)
    },
    queuedAhead: (run) => queue.ahead(run),
    attemptEnded: (run, attempt, outcome, fault) => {
      observer.attemptEnded(run.adapter, attempt.claim.entry.record.alias, outcome)
      circuits.attemptEnded(attempt, outcome, fault)
    },
    orphaned: (run, is) => {
      if (is) orphaned.add(run)
      else orphaned.delete(run)
    },
    delivering: circuits.delivering,
    finished: (run) => {
      live.delete(run)
      inputs -= run.inputBytes
      history.ended(run)
      const ended = run.snapshot()
      observer.finished(ended)
      run.span?.end(ended)
      if (live.size === 0) for (const resolve of idle.splice(0)) resolve()
    },
    slowConsumer: (run) => observer.slowConsumer(run.snapshot()),
    acknowledgeLater: (attempt) => {
      if (unacknowledged.size === 0) timers.after(LATE_ACK_MS, acknowledgeAll)
      unacknowledged.add(attempt)
    },
    duplicate: (_run, attempt) => observer.duplicateEvent(attempt.claim.entry.record.alias)
  }

  const refusalOf = (need: SelectionNeed, selection: Selection, at: SelectionClock, waits: boolean) =>
    refusal(need, selection, { registry, queue, verdicts: () => verdicts(need, selection, at), waits })

  const refuse = (spec: RunSpec, failure: RunFailure) => {
    observer.refused(spec, failure.code)
    return new RunRefused({ failure })
  }

  const submitNow = (spec: RunSpec) => {
    if (draining) return refuse(spec, drainingFailure)
    const need = needOf(spec)
    const at = clock()
    // Runs that wait for the same target go first.
    const waits = queue.count(spec.adapter, spec.target) > 0
    const selection = select(registry.all(), need, at)
    const failure = refusalOf(need, selection, at, waits)
    if (failure !== undefined) return refuse(spec, failure)
    if (budget.full) return refuse(spec, tooManyRuns(budget.maxRuns))
    const bytes = inputBytes(spec.input)
    if (inputs > 0 && inputs + bytes > budget.maxInputBytes) return refuse(spec, tooMuchInput(inputs))
    const id = newRunId(Date.now())
    const run = new Run(id, spec, host, tracing.start(id, spec))
    history.add(run)
    live.add(run)
    inputs += bytes
    run.inputBytes = bytes
    observer.submitted(spec)
    if (waits || selection.chosen === undefined || !dispatchTo(run, need, selection.chosen, selection, at)) {
      remember(run, need, selection, at)
      run.wait()
    }
    const reader = run.relay.reader(0, spec.detached !== true)
    if (reader === undefined) throw new Error("a new relay has no first event")
    run.owner = reader
    return { run: run.snapshot(), reader }
  }

  const found = (runId: string): Effect.Effect<Run, RunNotFound> => {
    const run = history.get(runId)
    return run === undefined ? Effect.fail(new RunNotFound({ runId })) : Effect.succeed(run)
  }

  const resumeOne = (entry: NodeEntry, link: NodeLink, claim: HeldRunClaim): HeldRunAnswer => {
    const run = history.get(claim.runId)
    if (run === undefined) return { resume: false, reason: "this edge does not know the run" }
    const attempt = run.attempt
    if (attempt === undefined || !run.waitsFor(entry) || attempt.number !== claim.attempt) {
      return { resume: false, reason: run.final ? "the run is over" : "the run goes on elsewhere" }
    }
    if (claim.firstUnackedSeq > attempt.lastSeq + 1 || claim.lastSeq < attempt.lastSeq) {
      const message = `it holds events ${claim.firstUnackedSeq} to ${claim.lastSeq}, the edge has ${attempt.lastSeq}`
      run.violation(message)
      return { resume: false, reason: message }
    }
    const afterSeq = Math.max(attempt.ackedSeq, claim.firstUnackedSeq - 1)
    return {
      resume: true,
      afterSeq,
      sink: attempt,
      attach: (handle) => run.resumed(link, handle, afterSeq)
    }
  }

  return {
    submit: (spec) =>
      Effect.suspend(() => {
        const result = submitNow(spec)
        return result instanceof RunRefused ? Effect.fail(result) : Effect.succeed(result)
      }),
    get: (runId) => Effect.map(found(runId), (run) => run.snapshot()),
    list: (filter) =>
      history.list(filter?.active, filter?.limit ?? DEFAULT_LIST).map((run) => run.snapshot()),
    read: (runId, after = 0) =>
      Effect.flatMap(found(runId), (run) => {
        // Nobody has seen what has not come: such a reader begins with what comes next.
        const reader = run.relay.reader(Math.min(after, run.relay.lastSeq), false)
        return reader === undefined
          ? Effect.fail(new TooLate({ runId, after, oldest: run.relay.firstSeq }))
          : Effect.succeed(reader)
      }),
    cancel: (runId, reason) =>
      Effect.map(found(runId), (run) => {
        run.cancel(reason)
        return run.snapshot()
      }),
    explain: (spec): Explanation => {
      const need = needOf(spec)
      const at = clock()
      const selection = select(registry.all(), need, at)
      const ahead = queue.count(spec.adapter, spec.target)
      const failure = draining ? drainingFailure : refusalOf(need, selection, at, ahead > 0)
      const waits = failure === undefined && (selection.chosen === undefined || ahead > 0)
      return {
        adapter: spec.adapter,
        target: spec.target,
        ...(selection.chosen !== undefined && !waits && failure === undefined
          ? { chosen: selection.chosen.record.alias }
          : {}),
        ...(failure !== undefined ? { otherwise: { waits: false, failure } } : {}),
        ...(waits ? { otherwise: { waits: true, ahead } } : {}),
        nodes: verdicts(need, selection, at)
      }
    },
    drain: Effect.gen(function* () {
      draining = true
      for (const run of [...queue.all()]) run.drain()
      if (live.size === 0) return
      const done = yield* Deferred.make<void>()
      idle.push(() => Deferred.doneUnsafe(done, Effect.void))
      yield* Deferred.await(done)
    }),
    stop: Effect.sync(() => {
      draining = true
      for (const run of [...live]) run.stop()
    }),
    draining: () => draining,
    resume: (entry, link, held) => {
      const answers = held.map((claim) => resumeOne(entry, link, claim))
      const resumed = new Set(
        held.filter((_, index) => answers[index]?.resume === true).map((claim) => claim.runId)
      )
      for (const run of [...live]) {
        if (run.waitsFor(entry) && !resumed.has(run.id)) run.notResumed("it came back without the run")
      }
      return answers
    },
    linkLost: (link, reason, mayResume) => {
      for (const run of [...live, ...orphaned]) run.linkLost(link, reason, mayResume)
    },
    counts: () => ({ queued: queue.size, inFlight: live.size - queue.size }),
    close: unwatch
  }
}
