// The adapter that the node is configured with while it is judged.
import { fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf"
import { type AdapterConfig, AdapterConfigSchema } from "@iop/platform-common/gen/iop/v1/node_config_pb"
import type { Targets } from "../trial/NodeTrial.ts"
import { CommandFailed } from "./CommandFailed.ts"

/** Runs in flight that the kit needs: some checks leave runs behind that nobody ends. */
const SLOTS = 64

/** What the bundled fake node's scripts do: short answers, and a flood of some run windows. */
const SCRIPTS = { count: { tokens: 20 }, flood: { tokens: 3000, size: 100 } } satisfies JsonObject

/** A mock adapter with the targets, or what the JSON says. Throws `CommandFailed`. */
export const adapterConfig = (name: string, targets: Targets, json: string | undefined): AdapterConfig => {
  try {
    return fromJson(AdapterConfigSchema, {
      ...(json === undefined ? mock(targets) : (JSON.parse(json) as JsonObject)),
      name
    } satisfies JsonValue)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CommandFailed({
      exitCode: 2,
      message: `--adapter-config: no iop.v1.AdapterConfig in JSON: ${why}`
    })
  }
}

const mock = ({ count, echo, flood, never }: Targets): JsonObject => ({
  slots: SLOTS,
  targets: [echo, count, never, flood].filter((target) => target !== ""),
  mock: {
    seed: "1",
    scripts: {
      ...(count === "" ? {} : { [count]: { script: "count", ...SCRIPTS.count } }),
      ...(flood === "" ? {} : { [flood]: { script: "flood", ...SCRIPTS.flood } }),
      ...(echo === "" ? {} : { [echo]: { script: "echo" } }),
      ...(never === "" ? {} : { [never]: { script: "never" } })
    }
  }
})
