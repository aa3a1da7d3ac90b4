// A node with one adapter: says what it is told in capitals, a word at a time.
//
//   IOP_NODE_TOKEN=… npx -y pnpm@12 --filter @iop/node-sdk exec node examples/shoutNode.ts 192.168.1.2 7610
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { AdapterFailure, defineAdapter } from "@iop/node-sdk/Adapter"
import { runNode } from "@iop/node-sdk/runNode"
import { textDelta } from "@iop/node-sdk/textDelta"
import { flattenInput } from "@iop/platform-common/protocol/runInputText"
import { Effect, Redacted, Stream } from "effect"

const shout = defineAdapter({
  kind: "shout",
  start: (settings, context) =>
    Effect.gen(function* () {
      yield* Effect.logInfo("ready to shout", { adapter: context.name })
      yield* Effect.addFinalizer(() => Effect.logInfo("silent again"))
      const mark = typeof settings.mark === "string" ? settings.mark : "!"
      return {
        run: (run) => {
          const words = flattenInput(run.input).split(" ")
          if (words.includes("whisper")) {
            return Stream.fail(
              new AdapterFailure({ code: "invalid_input", message: "I can only shout", retryable: false })
            )
          }
          return Stream.fromIterable(words).pipe(
            Stream.map((word) => textDelta(`${word.toUpperCase()}${mark} `)),
            Stream.tap(() => Effect.sleep("10 millis"))
          )
        }
      }
    })
})

const [host = "127.0.0.1", port = "7610"] = process.argv.slice(2)
runNode({
  edge: { host, port: Number(port) },
  token: Redacted.make(process.env.IOP_NODE_TOKEN ?? ""),
  adapters: [shout],
  agentName: "shout-node",
  agentVersion: "1.0.0"
}).pipe(NodeRuntime.runMain)
