// Takes a run and says nothing: what a backend does that hangs.

import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import { Effect, Stream } from "effect"
import type { Script } from "./Script.ts"

/**
 * Parameters: `start` (false) whether it at least says `started`, `ignore_cancel` (false) whether it goes on saying
 * nothing when it is cancelled, for the rest of the process's life.
 */
export const never: Script = {
  name: "never",
  capabilities: ["chat", "completion"],
  play: ({ parameters }) => {
    const started: Stream.Stream<NodeRunEvent> = parameters.flag("start", false)
      ? Stream.make<[NodeRunEvent]>({ type: "started" })
      : Stream.empty
    const silence = parameters.flag("ignore_cancel", false)
      ? Effect.uninterruptible(Effect.never)
      : Effect.never
    return started.pipe(Stream.concat(Stream.drain(Stream.fromEffect(silence))))
  }
}
