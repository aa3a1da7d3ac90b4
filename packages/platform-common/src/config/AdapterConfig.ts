// An adapter of a node as the configuration describes it: what all types share, and the settings of each type. The edge
// only hands these settings to the node; it never acts on them.

import { Schema } from "effect"
import * as Default from "./defaults.ts"
import { FilledText, HttpUrl, Identifier, JsonObject, TargetName, wholeNumber } from "./names.ts"
import { HiddenText, SecretText } from "./SecretText.ts"
import { optional, required, setting } from "./setting.ts"

/** Which types of adapters are only handed to nodes so far. */
const NOT_YET = "No program in this repository runs it yet; a node by others may."

const common = {
  name: required(Identifier, "The adapter's name. The same name on several nodes is one adapter."),
  slots: setting(wholeNumber(1, 10_000), Default.ADAPTER_SLOTS, "Runs in flight on this adapter."),
  targets: setting(
    Schema.Array(TargetName).annotate({ expected: "a list of target names" }),
    [],
    "The targets to offer; none: those that the adapter finds by itself."
  )
}

/** What every adapter has, whatever its type. */
export const AdapterCommon = Schema.Struct(common)

const Command = Schema.Array(Schema.String.annotate({ expected: "a text" }))
  .annotate({ expected: "a list: the program and its arguments" })
  .check(
    Schema.makeFilter((words: ReadonlyArray<string>) => words.length > 0 && words[0]?.trim() !== "", {
      expected: "a list that starts with the program to run"
    })
  )

const variableName = "names of environment variables"

/** One command of a `cli` adapter, offered as one target. */
export const CliProfileConfig = Schema.Struct({
  name: required(TargetName, "The target's name."),
  command: required(Command, "The program and its arguments. Never given to a shell."),
  working_directory: optional(
    FilledText,
    "A fixed directory on the node's machine; none: a fresh one for each run."
  ),
  env_allow: setting(
    Schema.Array(
      Schema.String.check(Schema.isPattern(/^[A-Za-z_][A-Za-z0-9_]*$/u, { expected: variableName }))
    ).annotate({
      expected: "a list of variable names"
    }),
    [],
    "Variables of the node's own environment that the command may see."
  ),
  env: setting(
    Schema.Record(
      Schema.String.check(Schema.isPattern(/^[A-Za-z_][A-Za-z0-9_]*$/u, { expected: variableName })),
      HiddenText
    ).annotate({ expected: "a map of variable names to texts" }),
    {},
    "Variables to set for the command."
  ),
  extra: optional(JsonObject, "Settings that this version has no key for, passed on as they are.")
}).annotate({ expected: "a map with name and command" })
export type CliProfileConfig = typeof CliProfileConfig.Type

const MockAdapter = Schema.Struct({
  ...common,
  type: required(Schema.Literal("mock"), "The scripted adapter of the bundled fake node."),
  seed: setting(
    wholeNumber(0, Number.MAX_SAFE_INTEGER),
    Default.MOCK_SEED,
    "The seed of all that looks random."
  ),
  scripts: optional(
    Schema.Record(TargetName, JsonObject).annotate({ expected: "a map of target names to parameters" }),
    "Parameters of the scripts, by target."
  )
})

const OpenaiAdapter = Schema.Struct({
  ...common,
  type: required(
    Schema.Literal("openai"),
    `Any server that speaks OpenAI's API: vLLM, llama.cpp, LM Studio. ${NOT_YET}`
  ),
  base_url: required(HttpUrl, "The server as the node sees it, such as http://127.0.0.1:8000/v1."),
  api_key: optional(SecretText, "Sent to the server as a bearer token."),
  headers: setting(
    Schema.Record(
      Schema.String.check(
        Schema.isPattern(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/u, { expected: "names of HTTP headers" })
      ),
      HiddenText
    ).annotate({ expected: "a map of header names to texts" }),
    {},
    "Further request headers."
  ),
  extra: optional(JsonObject, "Settings that this version has no key for, passed on as they are.")
})

const OllamaAdapter = Schema.Struct({
  ...common,
  type: required(Schema.Literal("ollama"), `An Ollama server. ${NOT_YET}`),
  base_url: required(HttpUrl, "The server as the node sees it, such as http://127.0.0.1:11434."),
  keep_alive: optional(
    FilledText,
    "How long the server keeps a model loaded, in Ollama's notation, such as 10m."
  ),
  num_ctx: optional(wholeNumber(1, 100_000_000), "Context length in tokens; none: the model's own."),
  extra: optional(JsonObject, "Settings that this version has no key for, passed on as they are.")
})

const CliAdapter = Schema.Struct({
  ...common,
  type: required(Schema.Literal("cli"), `Commands as targets. ${NOT_YET}`),
  command: optional(
    Command,
    "The command of every target that has no profile of its own. Never given to a shell."
  ),
  profiles: setting(
    Schema.Array(CliProfileConfig).annotate({ expected: "a list of profiles" }),
    [],
    "Commands with a name of their own; each is a target."
  )
})

const CustomAdapter = Schema.Struct({
  ...common,
  type: required(Schema.Literal("custom"), "An adapter of your own, as of a node made with the SDK."),
  kind: required(Identifier, "What the node calls this kind of adapter."),
  settings: setting(JsonObject, {}, "Settings of its own, passed on as they are.")
})

/** An adapter, told apart by its `type`. */
export const AdapterConfig = Schema.Union([
  MockAdapter,
  OpenaiAdapter,
  OllamaAdapter,
  CliAdapter,
  CustomAdapter
]).annotate({
  expected: "an adapter: a map with name, type and the settings of that type"
})
export type AdapterConfig = typeof AdapterConfig.Type

/** The types that an adapter can have. */
export type AdapterType = AdapterConfig["type"]
