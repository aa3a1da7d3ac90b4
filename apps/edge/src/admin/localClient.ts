// The edge of this very process as an `EdgeClient`: the console inside `console --local` uses it, and the handlers of
// the admin API answer with it.
import { Effect, Result, Stream } from "effect"
import type { NodeEntry } from "../node/NodeEntry.ts"
import type { NodeRegistry } from "../node/NodeRegistry.ts"
import type { Timers } from "../node/Timers.ts"
import type { RunFailure, RunNotFound, RunRefused, TooLate } from "../run/RunFailure.ts"
import type { RunReader } from "../run/RunReader.ts"
import type { RunService } from "../run/RunService.ts"
import type { RunSnapshot } from "../run/RunSpec.ts"
import { type EdgeClient, EdgeProblem } from "./EdgeClient.ts"
import { nodeView } from "./NodeView.ts"
import { type RunEventView, runEventView } from "./RunEventView.ts"
import { type RunSubmission, toNeed, toRunSpec } from "./RunSubmission.ts"
import { explanationView, runView } from "./RunView.ts"

export interface LocalEdge {
  readonly runs: RunService["Service"]
  readonly registry: NodeRegistry["Service"]
  readonly timers: Timers["Service"]
}

/** The problem that a run's failure is to whoever submitted it. */
export const refusedProblem = (failure: RunFailure): EdgeProblem =>
  new EdgeProblem({
    code: failure.code,
    message: failure.message,
    ...(failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs })
  })

const notFound = (error: RunNotFound): EdgeProblem =>
  new EdgeProblem({ code: "not_found", message: error.message })

/** The problem of a run that is not known, or whose first events are no longer kept. */
export const unreadable = (error: RunNotFound | TooLate): EdgeProblem =>
  error._tag === "TooLate" ? new EdgeProblem({ code: "too_late", message: error.message }) : notFound(error)

/** Longest part of a caller's text that a message repeats. */
const MAX_ECHO = 256

/** Submits and returns the run with its owner's reader. */
export const submitRun = (
  edge: LocalEdge,
  submission: RunSubmission,
  caller: string
): Effect.Effect<{ readonly run: RunSnapshot; readonly reader: RunReader }, EdgeProblem> =>
  Result.match(toRunSpec(submission, caller), {
    onFailure: (message) => Effect.fail(new EdgeProblem({ code: "invalid_request", message })),
    onSuccess: (spec) =>
      Effect.mapError(edge.runs.submit(spec), (error: RunRefused) => refusedProblem(error.failure))
  })

/** `caller` is shown in the records of its runs; `asked` says in the reason of a cancel who asked for it. */
export const makeLocalClient = (
  edge: LocalEdge,
  caller: string,
  asked = `asked for by ${caller}`
): EdgeClient => {
  const { runs, registry, timers } = edge
  const view = (entry: NodeEntry) => nodeView(entry, timers.now())
  const withEntry = (name: string, change: (entry: NodeEntry) => void) =>
    Effect.suspend(() => {
      const entry = registry.entry(name)
      if (entry === undefined) {
        const message = `there is no node ${JSON.stringify(name.slice(0, MAX_ECHO))} in the configuration`
        return Effect.fail(new EdgeProblem({ code: "not_found", message }))
      }
      change(entry)
      return Effect.succeed(view(entry))
    })
  return {
    nodes: Effect.sync(() => registry.all().map(view)),
    node: (name) => withEntry(name, () => {}),
    setCordoned: (name, cordoned) => withEntry(name, (entry) => registry.setCordoned(entry, cordoned)),
    drainNode: (name) =>
      withEntry(name, (entry) => {
        registry.setCordoned(entry, true)
        entry.link?.drain(entry.record.runtime.drainTimeoutMs, "an operator drains this node")
      }),
    runs: (filter) => Effect.sync(() => runs.list(filter).map(runView)),
    run: (id) => Effect.mapBoth(runs.get(id), { onFailure: notFound, onSuccess: runView }),
    submit: (submission) =>
      Effect.map(submitRun(edge, submission, caller), ({ run, reader }) => ({
        id: run.id,
        events: eventsOf(runs, reader)
      })),
    submitDetached: (submission) =>
      Effect.map(submitRun(edge, { ...submission, detached: true }, caller), ({ run, reader }) => {
        reader.close()
        return runView(run)
      }),
    events: (id, after) =>
      Stream.unwrap(
        Effect.map(Effect.mapError(runs.read(id, after), unreadable), (reader) => eventsOf(runs, reader))
      ),
    cancel: (id, reason) =>
      Effect.mapBoth(runs.cancel(id, reason === undefined ? asked : `${reason}, ${asked}`), {
        onFailure: notFound,
        onSuccess: runView
      }),
    explain: (need) => Effect.sync(() => explanationView(runs.explain(toNeed(need))))
  }
}

const eventsOf = (runs: LocalEdge["runs"], reader: RunReader): Stream.Stream<RunEventView, EdgeProblem> =>
  runs.events(reader).pipe(
    Stream.map(runEventView),
    Stream.mapError((error) => refusedProblem(error.failure))
  )
