// Every rule of the specification, as far as an edge can be judged by it.
import type { Rule } from "../../Rule.ts"
import type { EdgeTrial } from "../../trial/EdgeTrial.ts"
import { cancel, drain } from "./ends.ts"
import { flow } from "./flow.ts"
import { framing } from "./framing.ts"
import { heartbeat } from "./heartbeat.ts"
import { registration } from "./registration.ts"
import { runs } from "./runs.ts"
import { status } from "./status.ts"

/** In the order of proto/README.md. */
export const edgeRules: ReadonlyArray<Rule<EdgeTrial>> = [
  ...framing,
  ...registration,
  ...heartbeat,
  ...status,
  ...runs,
  ...flow,
  ...cancel,
  ...drain
]
