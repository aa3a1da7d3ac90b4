// Scripts that fail: before the first delta, where another node may take over, and after it, where none may.

import { AdapterFailure } from "@iop/node-sdk/Adapter"
import { textDelta } from "@iop/node-sdk/textDelta"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { Effect, Stream } from "effect"
import type { Parameters } from "../Parameters.ts"
import { MAX_MS } from "./answer.ts"
import { echo } from "./echo.ts"
import type { Script } from "./Script.ts"

/** How often each run was failed already, by the texts of the runs; one per process, as a backend's state would be. */
const failedBefore = new Map<string, number>()
/** Texts that are remembered; the oldest are forgotten first. */
const MAX_REMEMBERED = 10_000

/**
 * Fails before its first delta. Parameters: `times` (absent: always) how often a run with the same text fails on
 * this process before it succeeds as echo does, `retryable` (true), `fast` (true: without `started`), `delay_ms` (0)
 * before the failure.
 */
export const failFirst: Script = {
  name: "fail-first",
  capabilities: ["chat", "completion"],
  play: (scriptRun) => {
    const { parameters, run, text } = scriptRun
    const times = parameters.value("times") === undefined ? undefined : parameters.count("times", 0)
    if (times !== undefined) {
      const key = `${run.target}/${text}`
      const count = failedBefore.get(key) ?? 0
      if (count >= times) {
        failedBefore.delete(key)
        return echo.play(scriptRun)
      }
      failedBefore.set(key, count + 1)
      for (const oldest of failedBefore.keys()) {
        if (failedBefore.size <= MAX_REMEMBERED) break
        failedBefore.delete(oldest)
      }
    }
    const started: Stream.Stream<NodeRunEvent> = parameters.flag("fast", true)
      ? Stream.empty
      : Stream.make<[NodeRunEvent]>({ type: "started" })
    return started.pipe(
      Stream.concat(Stream.drain(Stream.fromEffect(Effect.sleep(parameters.count("delay_ms", 0, MAX_MS))))),
      Stream.concat(Stream.fail(failureOf(parameters, "before its first delta")))
    )
  }
}

/** Fails after `tokens` (3) deltas. Parameters: `retryable` (true), `interval_ms` (0) before each delta. */
export const failMid: Script = {
  name: "fail-mid",
  capabilities: ["chat", "completion"],
  play: ({ parameters }) => {
    const tokens = parameters.count("tokens", 3, 1_000_000)
    const intervalMs = parameters.count("interval_ms", 0, MAX_MS)
    return Stream.range(1, tokens).pipe(
      Stream.rechunk(1),
      Stream.mapEffect((number) =>
        intervalMs === 0
          ? Effect.succeed(textDelta(`${number} `))
          : Effect.as(Effect.sleep(intervalMs), textDelta(`${number} `))
      ),
      Stream.concat(Stream.fail(failureOf(parameters, `after ${tokens} deltas`)))
    )
  }
}

const failureOf = (parameters: Parameters, when: string) =>
  new AdapterFailure({
    code: "adapter_error",
    message: `the script fails ${when}, as it is meant to`,
    retryable: parameters.flag("retryable", true),
    backendStatus: 500
  })
