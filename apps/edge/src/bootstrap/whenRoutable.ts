// Waits until nodes take runs.
import { Effect } from "effect"
import { nodeState } from "../admin/nodeState.ts"
import type { NodeRegistry } from "../node/NodeRegistry.ts"

/** Resolves once every node of the configuration is routable. */
export const whenRoutable = (registry: Pick<NodeRegistry["Service"], "all" | "watch">): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const ready = () => registry.all().every((entry) => nodeState(entry, 0).state === "routable")
    if (ready()) {
      resume(Effect.void)
      return
    }
    const stop = registry.watch(() => {
      if (!ready()) return
      stop()
      resume(Effect.void)
    })
    return Effect.sync(stop)
  })
