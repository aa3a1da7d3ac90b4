// Every rule of the specification, as far as a node can be judged by it.
import type { Rule } from "../../Rule.ts"
import type { NodeTrial } from "../../trial/NodeTrial.ts"
import { cancel, drain } from "./ends.ts"
import { flow } from "./flow.ts"
import { framing } from "./framing.ts"
import { heartbeat } from "./heartbeat.ts"
import { registration } from "./registration.ts"
import { runs } from "./runs.ts"
import { status } from "./status.ts"

/** In the order of proto/README.md. */
export const nodeRules: ReadonlyArray<Rule<NodeTrial>> = [
  ...framing,
  ...registration,
  ...heartbeat,
  ...status,
  ...runs,
  ...flow,
  ...cancel,
  ...drain
]
