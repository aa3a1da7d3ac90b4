// A node under test, on a scripted edge in memory, and a log that a test can read.

import { Effect, Logger, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"
import { AdapterFailure, defineAdapter } from "../src/Adapter.ts"
import { makeNodeAgent, type NodeAgentOptions } from "../src/NodeAgent.ts"
import { type MemoryEdge, memoryEdge } from "../src/testkit/scriptedEdge.ts"
import { textDelta } from "../src/textDelta.ts"

export const TOKEN = "iop-secret-token"

/** Behaviours by target: two words, silence, silence that ignores cancels, endless text, failures. */
export const words = defineAdapter({
  kind: "words",
  start: () =>
    Effect.succeed({
      run: (run) => {
        switch (run.target) {
          case "never":
            return Stream.never
          case "stubborn":
            return Stream.fromEffect(Effect.uninterruptible(Effect.never))
          case "slow-stop":
            return Stream.fromEffect(Effect.onInterrupt(Effect.never, () => Effect.sleep("1 seconds")))
          case "endless":
            return Stream.fromIterable(endless())
          case "large":
            return Stream.make(textDelta("x".repeat(512 * 1024)))
          case "huge":
            return Stream.make(textDelta("안녕😀".repeat(250_000)))
          case "fails":
            return Stream.make(textDelta("half")).pipe(
              Stream.concat(
                Stream.fail(
                  new AdapterFailure({
                    code: "timeout",
                    message: "the backend took too long",
                    retryable: true,
                    backendStatus: 504
                  })
                )
              )
            )
          case "dies":
            return Stream.die(new Error("inner detail"))
          case "throws":
            throw new Error("inner detail")
          default:
            return Stream.make(textDelta("one "), textDelta("two"))
        }
      }
    })
})

function* endless() {
  for (let number = 0; ; number++) yield textDelta(`${number} ${"x".repeat(100)}`)
}

export const TARGETS = [
  "t",
  "never",
  "stubborn",
  "slow-stop",
  "endless",
  "large",
  "huge",
  "fails",
  "dies",
  "throws"
]

export const wordsAdapter = (fields: { readonly name?: string; readonly slots?: number } = {}) => ({
  name: fields.name ?? "w",
  slots: fields.slots ?? 2,
  targets: TARGETS,
  settings: { case: "custom" as const, value: { kind: "words" } }
})

export const config = { adapters: [wordsAdapter()] }

/** Starts a node; everything it logs is in `lines`, as `LEVEL text fields`. */
export const startNode = (options: Partial<NodeAgentOptions> = {}) =>
  Effect.gen(function* () {
    const edge = memoryEdge()
    const lines: Array<string> = []
    const log = Logger.make(({ logLevel, message }) => {
      lines.push(`${logLevel} ${[message].flat().map(textOf).join(" ")}`)
    })
    const agent = yield* Effect.provide(
      makeNodeAgent({
        dial: edge.dial,
        token: Redacted.make(TOKEN),
        adapters: [words],
        agentName: "test-node",
        agentVersion: "1.2.3",
        ...options
      }),
      Logger.layer([log])
    )
    const fiber = yield* Effect.forkScoped(Effect.provide(agent.run, Logger.layer([log])))
    return { agent, edge, fiber, lines }
  })

/** Lets time pass until the node dials for the `count`th time. */
export const untilDial = (edge: MemoryEdge, count: number) =>
  Effect.gen(function* () {
    for (let second = 0; edge.dials() < count; second++) {
      if (second > 120) throw new Error(`the node dialled ${edge.dials()} times in ${second} s, not ${count}`)
      yield* TestClock.adjust("1 seconds")
    }
  })

const textOf = (part: unknown): string => (typeof part === "string" ? part : JSON.stringify(part))
