// One run, from the adapter's stream into its outbox: pulls while the window has room and closes the run with
// exactly one terminal event, whatever the adapter does.

import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { Cause, Clock, Data, Effect, Exit, Stream } from "effect"
import { AdapterFailure, type AdapterInstance, type AdapterRun } from "./Adapter.ts"
import { EventShaper } from "./EventShaper.ts"
import type { RunOutbox } from "./RunOutbox.ts"

/** Why a run is ended from outside: the terminal event that it gets instead of its own. */
export type RunStop = Extract<NodeRunEvent, { readonly type: "cancelled" | "failed" }>

/** Stops the pull once the adapter has yielded its terminal event. */
class RunOver extends Data.TaggedError("RunOver") {}

/**
 * Executes the run until its terminal event is in the outbox. `stop` says why, when the effect is interrupted.
 * Never fails; a defect of the adapter ends the run as failed and is logged.
 */
export const executeRun = (options: {
  readonly instance: AdapterInstance
  readonly run: AdapterRun
  readonly outbox: RunOutbox
  readonly maxFrameBytes: () => number
  readonly stop: () => RunStop | undefined
}): Effect.Effect<void> => Clock.clockWith((clock) => execute(options, clock))

const execute = (
  { instance, maxFrameBytes, outbox, run, stop }: Parameters<typeof executeRun>[0],
  clock: Clock.Clock
): Effect.Effect<void> => {
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const shaper = new EventShaper({ stream: run.stream, maxFrameBytes, now })

  const room = Effect.callback<void>((resume) => {
    const withdraw = outbox.onRoom(() => resume(Effect.void))
    return Effect.sync(withdraw)
  })

  const push = (
    events: ReadonlyArray<NodeRunEvent>,
    from: number
  ): Effect.Effect<void, AdapterFailure | RunOver> =>
    guarded(() => {
      for (let index = from; index < events.length; index++) {
        if (!outbox.canNumberMore) return Effect.fail(tooManyEvents)
        if (!outbox.offer(events[index]!)) return Effect.flatMap(room, () => push(events, index))
      }
      return shaper.ended ? Effect.fail(new RunOver()) : Effect.void
    })

  const take = (events: ReadonlyArray<NodeRunEvent>) => guarded(() => push(shaper.shape(events), 0))

  return Stream.suspend(() => instance.run(run)).pipe(
    Stream.runForEachArray(take),
    Effect.andThen(take([{ type: "completed", finishReason: "stop" }])),
    Effect.catchTag("RunOver", () => Effect.void),
    Effect.onExit((exit) =>
      Effect.suspend(() => {
        if (outbox.ended) return Effect.void
        offerTerminal(outbox, terminalOf(exit, stop()))
        return Exit.isFailure(exit) && Cause.hasDies(exit.cause)
          ? Effect.logError("an adapter crashed in a run", exit.cause).pipe(
              Effect.annotateLogs({ run: run.runId, target: run.target })
            )
          : Effect.void
      })
    ),
    Effect.ignore
  )
}

/** What the shaper or the codec throws is a failure of the run, not of the node. */
const guarded = <E>(
  body: () => Effect.Effect<void, E | AdapterFailure>
): Effect.Effect<void, E | AdapterFailure> =>
  Effect.suspend(() => {
    try {
      return body()
    } catch (thrown) {
      return Effect.fail(thrown instanceof AdapterFailure ? thrown : unsendable(thrown))
    }
  })

/** A run ends even if the adapter's last word cannot be put on the wire. */
const offerTerminal = (outbox: RunOutbox, event: NodeRunEvent): void => {
  try {
    outbox.offer(event)
  } catch (thrown) {
    const { code, message, retryable } = unsendable(thrown)
    outbox.offer({ type: "failed", code, message, retryable })
  }
}

const tooManyEvents = new AdapterFailure({
  code: "limit",
  message: "the run produced more events than the protocol can number",
  retryable: false
})

const unsendable = (thrown: unknown) =>
  new AdapterFailure({
    code: "limit",
    message: `an event of the run cannot be sent: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    retryable: false
  })

const terminalOf = (exit: Exit.Exit<void, AdapterFailure>, stop: RunStop | undefined): NodeRunEvent => {
  if (Exit.isSuccess(exit)) return { type: "completed", finishReason: "stop" }
  // An adapter that fails in its finalizers while it is being stopped has been stopped all the same.
  if (stop !== undefined) return stop
  for (const reason of exit.cause.reasons) {
    if (Cause.isFailReason(reason)) return failed(reason.error)
  }
  return {
    type: "failed",
    code: "internal",
    message: Cause.hasInterruptsOnly(exit.cause)
      ? "the adapter interrupted its own run"
      : "the adapter crashed; the node's log says more",
    retryable: true
  }
}

const failed = (failure: AdapterFailure): NodeRunEvent => ({
  type: "failed",
  code: failure.code,
  message: failure.message,
  retryable: failure.retryable,
  ...(failure.backendStatus === undefined ? {} : { backendStatus: failure.backendStatus }),
  ...(failure.backendCode === undefined ? {} : { backendCode: failure.backendCode }),
  ...(failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs })
})
