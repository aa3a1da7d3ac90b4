// The adapter of the bundled fake node. Its targets are scripts: each behaves in one way, the same way each time,
// so that a run's output says whether anything on its way was lost, doubled or swapped.

import { AdapterFailure, defineAdapter, type TargetOffer } from "@iop/node-sdk/Adapter"
import { flattenInput } from "@iop/platform-common/protocol/runInputText"
import { Effect, Stream } from "effect"
import { mockScripts } from "./mockScripts.ts"
import { type ParameterSource, Parameters } from "./Parameters.ts"
import { promptParameters } from "./promptParameters.ts"
import { SeededRandom } from "./SeededRandom.ts"
import type { Script } from "./scripts/Script.ts"

/** What the adapter does outside of its runs. */
export interface MockAdapterOptions {
  /** Called with a run's `fault` parameter, before the run starts. */
  readonly onFault?: (fault: unknown, runId: string) => void
}

/**
 * Makes the adapter. A target plays the script of its own name, or the one that its configuration names in
 * `script`; without configured targets all scripts are offered. The rest of a target's configuration are defaults
 * of its script's parameters.
 */
export const mockAdapter = (options: MockAdapterOptions = {}) =>
  defineAdapter({
    kind: "mock",
    start: (settings, context) =>
      Effect.gen(function* () {
        const configured = sourceOf(settings.scripts)
        const names =
          context.targets.length > 0
            ? context.targets
            : [...mockScripts.keys(), ...Object.keys(configured).filter((name) => !mockScripts.has(name))]
        const targets = new Map<string, { readonly script: Script; readonly defaults: ParameterSource }>()
        for (const name of names) {
          const defaults = sourceOf(configured[name])
          const scriptName = typeof defaults["script"] === "string" ? defaults["script"] : name
          const script = mockScripts.get(scriptName)
          if (script === undefined) {
            return yield* new AdapterFailure({
              code: "adapter_error",
              message: `target ${name} has no script ${scriptName}; there are ${[...mockScripts.keys()].join(", ")}`,
              retryable: false
            })
          }
          targets.set(name, { script, defaults })
        }
        yield* context.report({ state: "ready", targets: Array.from(targets, offer) })
        return {
          run: (run) =>
            Stream.unwrap(
              Effect.suspend(() => {
                const target = targets.get(run.target)
                if (target === undefined) return Effect.fail(noTarget(run.target))
                const prompt = promptParameters(flattenInput(run.input))
                const parameters = new Parameters(
                  prompt.parameters,
                  sourceOf(run.input.parameters),
                  target.defaults
                )
                const fault = parameters.value("fault")
                if (fault !== undefined) options.onFault?.(fault, run.runId)
                const seed = parameters.value("seed") ?? settings.seed
                try {
                  return Effect.succeed(
                    target.script.play({
                      run,
                      text: prompt.text,
                      parameters,
                      random: new SeededRandom(`${String(seed)}/${run.target}/${prompt.text}`)
                    })
                  )
                } catch (thrown) {
                  return thrown instanceof AdapterFailure ? Effect.fail(thrown) : Effect.die(thrown)
                }
              })
            )
        }
      })
  })

const offer = ([name, { script }]: readonly [string, { readonly script: Script }]): TargetOffer => ({
  name,
  capabilities: script.capabilities
})

const noTarget = (name: string) =>
  new AdapterFailure({ code: "rejected", message: `there is no target ${name}`, retryable: true })

/** A JSON object, or an empty one in place of anything else. */
const sourceOf = (value: unknown): ParameterSource =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as ParameterSource) : {}
