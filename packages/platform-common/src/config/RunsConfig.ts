// The clocks and limits of runs.

import { Schema } from "effect"
import { byteSizeText } from "./ByteSizeText.ts"
import { DurationText } from "./DurationText.ts"
import * as Default from "./defaults.ts"
import { wholeNumber } from "./names.ts"
import { optional, section, setting } from "./setting.ts"

/** When an adapter of a node is left alone for a while: `failures` fast failures within `window`. */
export const CircuitConfig = Schema.Struct({
  failures: setting(wholeNumber(1, 1000), Default.CIRCUIT_FAILURES, "Fast failures that open the circuit."),
  window: setting(DurationText, Default.CIRCUIT_WINDOW, "The time within which these failures count."),
  open_for: setting(
    DurationText,
    Default.CIRCUIT_OPEN_FOR,
    "How long it stays open before a single run probes it."
  ),
  fast: setting(DurationText, Default.CIRCUIT_FAST, "A failure that takes less than this is fast.")
}).annotate({ expected: "a map" })
export type CircuitConfig = typeof CircuitConfig.Type

export const RunsConfig = Schema.Struct({
  queue_limit: setting(
    wholeNumber(0, 1_000_000),
    Default.QUEUE_LIMIT,
    "Runs that wait, for each adapter and target; 0: none."
  ),
  queue_timeout: setting(DurationText, Default.QUEUE_TIMEOUT, "How long a run waits for a slot."),
  first_event_timeout: setting(
    DurationText,
    Default.FIRST_EVENT_TIMEOUT,
    "How long a node may take to the first output."
  ),
  idle_timeout: setting(
    DurationText,
    Default.IDLE_TIMEOUT,
    "How long a node may be silent between two outputs."
  ),
  total_timeout: optional(DurationText, "How long a run may take altogether; none: for ever."),
  cancel_timeout: setting(
    DurationText,
    Default.CANCEL_TIMEOUT,
    "A cancelled run is over after this, whatever its node does."
  ),
  consumer_timeout: setting(
    DurationText,
    Default.CONSUMER_TIMEOUT,
    "A caller that takes nothing for this long is cut off."
  ),
  max_attempts: setting(
    wholeNumber(1, 100),
    Default.MAX_ATTEMPTS,
    "Nodes that a run may be given to, one after the other."
  ),
  relay_log: setting(
    byteSizeText(64 * 1024, 256 * 1024 * 1024),
    Default.RELAY_LOG,
    "Output of one run that the edge keeps for its callers."
  ),
  history: setting(wholeNumber(0, 1_000_000), Default.HISTORY, "Ended runs that the edge remembers."),
  circuit: section(CircuitConfig, "When an adapter of a node is left alone for a while.")
}).annotate({ expected: "a map" })
export type RunsConfig = typeof RunsConfig.Type
