// What a script of the mock adapter is.

import type { AdapterFailure, AdapterRun } from "@iop/node-sdk/Adapter"
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import type { Stream } from "effect"
import type { Parameters } from "../Parameters.ts"
import type { SeededRandom } from "../SeededRandom.ts"

/** One run of a script. */
export interface ScriptRun {
  readonly run: AdapterRun
  /** The input as one text, without parameters at its end. */
  readonly text: string
  readonly parameters: Parameters
  /** Seeded by the adapter's seed (or the run's), the target and the text: equal inputs, equal outputs. */
  readonly random: SeededRandom
}

/** A behaviour that a target can have. */
export interface Script {
  readonly name: string
  /** The well-known words for what it can do. */
  readonly capabilities: ReadonlyArray<string>
  /** May throw an `AdapterFailure` for parameters that make no sense. */
  readonly play: (scriptRun: ScriptRun) => Stream.Stream<NodeRunEvent, AdapterFailure>
}
