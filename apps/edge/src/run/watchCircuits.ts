// What the end of an attempt, or its first delta, says about the adapter that ran it.
import type { NodeRegistry } from "../node/NodeRegistry.ts"
import type { Timers } from "../node/Timers.ts"
import type { Attempt } from "./Attempt.ts"
import type { AttemptOutcome, RunObserver } from "./RunObserver.ts"

export interface CircuitWatch {
  /** `fault`: what the node said went wrong, when the adapter is to blame; else empty. */
  readonly attemptEnded: (attempt: Attempt, outcome: AttemptOutcome, fault: string) => void
  /** The first delta came: the adapter works. */
  readonly delivering: (attempt: Attempt) => void
}

/** @param fastFailureMs a failure within this time of its dispatch, before a delta, counts; milliseconds */
export const watchCircuits = (
  registry: NodeRegistry["Service"],
  timers: Timers["Service"],
  observer: RunObserver,
  fastFailureMs: number
): CircuitWatch => {
  const works = (attempt: Attempt): void => {
    const { entry, adapter } = attempt.claim
    const circuit = entry.circuit(adapter)
    if (circuit === undefined) return
    const wasOpen = circuit.at(timers.now()).state !== "closed"
    circuit.succeeded()
    if (!wasOpen) return
    observer.circuit(entry.record.alias, adapter, false, "")
    registry.touch(entry, "circuit")
  }
  return {
    delivering: works,
    attemptEnded: (attempt, outcome, fault) => {
      const { entry, adapter, probe } = attempt.claim
      const circuit = entry.circuit(adapter)
      if (circuit === undefined) return
      if (outcome === "completed") {
        works(attempt)
        return
      }
      const now = timers.now()
      const fast = probe || now - attempt.dispatchedAt <= fastFailureMs
      if (fault !== "" && !attempt.delivered && fast) {
        const openFor = circuit.failedFast(now, probe, fault)
        if (openFor === undefined) return
        observer.circuit(entry.record.alias, adapter, true, fault)
        // Runs that wait may try it when its time is over.
        timers.after(openFor, () => registry.touch(entry, "circuit"))
      } else if (probe) {
        circuit.probeEndedOpen()
        registry.touch(entry, "circuit")
      }
    }
  }
}
