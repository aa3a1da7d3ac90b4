// A node as the configuration describes it: who it is, how it proves that, and what it is to run.

import { Schema, SchemaGetter } from "effect"
import { AdapterConfig } from "./AdapterConfig.ts"
import { DurationOrZeroText, DurationText } from "./DurationText.ts"
import * as Default from "./defaults.ts"
import { FilledText, Identifier, Labels, wholeNumber } from "./names.ts"
import { SecretText } from "./SecretText.ts"
import { filledIn, optional, required, section, setting } from "./setting.ts"

const digest = "64 hexadecimal digits: the SHA-256 of the token"

/** The SHA-256 of a token, decoded to lower case. */
const TokenDigest = Schema.String.annotate({ expected: "a text" })
  .check(Schema.isPattern(/^[0-9A-Fa-f]{64}$/u, { expected: digest }))
  .pipe(
    Schema.decodeTo(Schema.String, {
      decode: SchemaGetter.transform((hex: string) => hex.toLowerCase()),
      encode: SchemaGetter.transform((hex: string) => hex)
    })
  )

/** Settings of a node as a whole. */
export const NodeRuntimeConfig = Schema.Struct({
  slots: optional(
    wholeNumber(1, 10_000),
    "Runs in flight on the whole node; none: the adapters' slots alone count."
  ),
  drain_timeout: setting(
    DurationOrZeroText,
    Default.NODE_DRAIN_TIMEOUT,
    "How long runs may take to finish when the node stops."
  ),
  probe_interval: setting(
    DurationText,
    Default.NODE_PROBE_INTERVAL,
    "How often adapters look at their backend."
  )
}).annotate({ expected: "a map" })
export type NodeRuntimeConfig = typeof NodeRuntimeConfig.Type

/**
 * A node. After loading, `alias` is always there (the id, where none was given) and exactly one of `token` and
 * `token_sha256`: a `token_file` was read into `token`.
 */
export const NodeConfig = Schema.Struct({
  id: required(Identifier, "The node's name for good."),
  alias: filledIn(Identifier, "the id", "A second name for people."),
  token: optional(
    SecretText,
    "What the node proves itself with. Best taken from a variable of the environment."
  ),
  token_file: optional(FilledText, "A file with the token, relative to this file."),
  token_sha256: optional(
    TokenDigest,
    "The SHA-256 of the token in hexadecimal, so that the token itself stays away."
  ),
  labels: setting(Labels, {}, "What routes and runs may ask for, such as gpu: rtx5090."),
  runtime: section(NodeRuntimeConfig, "Settings of the node as a whole."),
  adapters: setting(
    Schema.Array(AdapterConfig).annotate({ expected: "a list of adapters" }),
    [],
    "What the node runs."
  )
}).annotate({ expected: "a node: a map with id, a token and adapters" })
export type NodeConfig = typeof NodeConfig.Type
