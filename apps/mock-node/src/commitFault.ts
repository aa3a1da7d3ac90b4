// Reads a fault from wherever it came and commits it; one that nobody knows is logged and changes nothing.

import { Effect, Result } from "effect"
import { decodeFault } from "./Fault.ts"
import type { FaultyLink } from "./FaultyLink.ts"

/** The log line says "fault committed" after the fault was, so that a test can wait for it. */
export const commitFault = (link: FaultyLink, value: unknown): Effect.Effect<void> =>
  Effect.suspend(() => {
    const fault = decodeFault(value)
    if (Result.isFailure(fault)) {
      return Effect.logError("there is no such fault", { problem: fault.failure.message })
    }
    link.commit(fault.success)
    return Effect.logWarning("fault committed", { fault: fault.success.fault })
  })
