// From what the machine decided, and what a node said, to the events that consumers see.
import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import type { RunEvent } from "./RunEvent.ts"
import type { MachineInput, RunOutcome } from "./runMachine.ts"

/** Whether a consumer would learn nothing from it. Events of kinds that this version does not know come as such. */
export const isEmpty = (event: RunEvent | NodeRunEvent): boolean =>
  event.type === "delta" && "text" in event && event.text === "" && !("logprobs" in event)

/** The last event of a run, for its consumers. */
export const terminalEvent = (outcome: RunOutcome, input: MachineInput): RunEvent => {
  switch (outcome.type) {
    case "completed":
      return input.type === "event" && input.event.type === "completed"
        ? input.event
        : { type: "completed", finishReason: outcome.finishReason }
    case "failed":
      return { type: "failed", ...outcome.failure }
    case "cancelled":
      return { type: "cancelled", reason: outcome.reason }
  }
}
