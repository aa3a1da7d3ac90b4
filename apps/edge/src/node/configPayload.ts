// From a record to what its node is sent. The only place where a node's settings become protobuf.
import { createHash } from "node:crypto"
import { create, type JsonObject, toBinary } from "@bufbuild/protobuf"
import {
  AdapterConfigSchema,
  type AdapterConfig as AdapterPayload,
  type NodeConfigPayload,
  NodeConfigPayloadSchema
} from "@iop/platform-common/gen/iop/v1/node_config_pb"
import { Redacted } from "effect"
import type { AdapterRecord, NodeRecord } from "./NodeRecord.ts"

/** 64 bits of SHA-256: enough to tell configurations of one node apart, short enough to be read aloud. */
const REVISION_HEX_CHARS = 16

/**
 * The configuration of a node as it goes over the wire. The revision is a hash of everything else in it, so that
 * the same settings have the same revision in every edge process.
 */
export const buildConfigPayload = (record: NodeRecord): NodeConfigPayload => {
  const payload = create(NodeConfigPayloadSchema, {
    labels: sorted(record.labels),
    runtime: {
      slots: record.runtime.slots ?? 0,
      drainTimeoutMs: record.runtime.drainTimeoutMs,
      probeIntervalMs: record.runtime.probeIntervalMs
    },
    adapters: record.adapters.map(adapterPayload)
  })
  payload.revision = createHash("sha256")
    .update(toBinary(NodeConfigPayloadSchema, payload))
    .digest("hex")
    .slice(0, REVISION_HEX_CHARS)
  return payload
}

const sorted = (record: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Secrets leave their wrapper only here, on their way to the node that needs them. */
const revealed = (record: Readonly<Record<string, Redacted.Redacted<string>>>): Record<string, string> =>
  sorted(Object.fromEntries(Object.entries(record).map(([key, value]) => [key, Redacted.value(value)])))

const adapterPayload = (adapter: AdapterRecord): AdapterPayload =>
  create(AdapterConfigSchema, {
    name: adapter.name,
    slots: adapter.slots,
    targets: [...adapter.targets],
    settings: settingsOf(adapter)
  })

const settingsOf = ({ settings }: AdapterRecord): NonNullable<AdapterPayload["settings"]> => {
  switch (settings.type) {
    case "mock":
      return {
        case: "mock",
        value: {
          $typeName: "iop.v1.MockAdapterSettings",
          seed: BigInt(settings.seed),
          ...(settings.scripts === undefined ? {} : { scripts: settings.scripts as JsonObject })
        }
      }
    case "openai":
      return {
        case: "openai",
        value: {
          $typeName: "iop.v1.OpenaiAdapterSettings",
          baseUrl: settings.base_url,
          apiKey: settings.api_key === undefined ? "" : Redacted.value(settings.api_key),
          headers: revealed(settings.headers ?? {}),
          ...(settings.extra === undefined ? {} : { extra: settings.extra as JsonObject })
        }
      }
    case "ollama":
      return {
        case: "ollama",
        value: {
          $typeName: "iop.v1.OllamaAdapterSettings",
          baseUrl: settings.base_url,
          keepAlive: settings.keep_alive ?? "",
          numCtx: settings.num_ctx ?? 0,
          ...(settings.extra === undefined ? {} : { extra: settings.extra as JsonObject })
        }
      }
    case "cli":
      return {
        case: "cli",
        value: {
          $typeName: "iop.v1.CliAdapterSettings",
          command: [...(settings.command ?? [])],
          profiles: (settings.profiles ?? []).map((profile) => ({
            $typeName: "iop.v1.CliProfile",
            name: profile.name,
            command: [...profile.command],
            workingDirectory: profile.working_directory ?? "",
            envAllow: [...(profile.env_allow ?? [])],
            env: revealed(profile.env ?? {}),
            ...(profile.extra === undefined ? {} : { extra: profile.extra as JsonObject })
          }))
        }
      }
    case "custom":
      return {
        case: "custom",
        value: {
          $typeName: "iop.v1.CustomAdapterSettings",
          kind: settings.kind,
          ...(settings.settings === undefined ? {} : { settings: settings.settings as JsonObject })
        }
      }
  }
}
