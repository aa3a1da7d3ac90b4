// What a caller of the admin API sends to have something run, and the run that it becomes.
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf"
import { Role, type RunInput, RunInputSchema } from "@iop/platform-common/gen/iop/v1/run_input_pb"
import { promptInput, wellFormedInput } from "@iop/platform-common/protocol/runInputText"
import { Result, Schema } from "effect"
import type { RunSpec } from "../run/RunSpec.ts"

const Name = Schema.NonEmptyString.check(Schema.isMaxLength(256))
const Labels = Schema.Record(
  Schema.String.check(Schema.isMaxLength(63)),
  Schema.String.check(Schema.isMaxLength(128))
).check(Schema.isMaxProperties(64))

const Message = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool"]),
  content: Schema.String,
  name: Schema.optionalKey(Schema.String),
  tool_call_id: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Message" })

/** What is asked about a run before there is one. */
export const RunNeed = Schema.Struct({
  adapter: Name,
  target: Name,
  labels: Schema.optionalKey(Labels).annotateKey({ description: "Labels that the node must have." }),
  session: Schema.optionalKey(Name).annotateKey({
    description: "Runs of one session like to meet the same node."
  })
}).annotate({ identifier: "RunNeed" })
export type RunNeed = typeof RunNeed.Type

export const RunSubmission = Schema.Struct({
  ...RunNeed.fields,
  prompt: Schema.optionalKey(Schema.String).annotateKey({
    description: "A text to be continued. Exactly one of prompt, messages and input is given."
  }),
  messages: Schema.optionalKey(Schema.NonEmptyArray(Message)).annotateKey({
    description: "A conversation to be continued."
  }),
  input: Schema.optionalKey(Schema.Json).annotateKey({
    description:
      "Any input: an iop.v1.RunInput in protobuf's JSON form (chat with tools, images; prompt; embed)."
  }),
  stream: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Whether the text comes as it is made; true by default."
  }),
  detached: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Whether the run goes on when its caller leaves. Without events=true it always does."
  }),
  timeout_ms: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 1 }))
  ).annotateKey({ description: "Total time in milliseconds." })
}).annotate({ identifier: "RunSubmission" })
export type RunSubmission = typeof RunSubmission.Type

/** What may be said when a run is cancelled. */
export const RunCancel = Schema.Struct({
  reason: Schema.optionalKey(Schema.NonEmptyString.check(Schema.isMaxLength(200))).annotateKey({
    description: "Why, for the run's record. Who asked stands there in any case."
  })
}).annotate({ identifier: "RunCancel" })

const roles = {
  system: Role.SYSTEM,
  developer: Role.DEVELOPER,
  user: Role.USER,
  assistant: Role.ASSISTANT,
  tool: Role.TOOL
} as const

/** Longest message of the protobuf parser that is passed on. */
const MAX_DETAIL = 300

/** The input of a submission, or a sentence about what is wrong with it. */
const inputOf = (submission: RunSubmission): Result.Result<RunInput, string> => {
  const { prompt, messages, input } = submission
  const given = [prompt, messages, input].filter((value) => value !== undefined).length
  if (given !== 1) return Result.fail("exactly one of prompt, messages and input must be given")
  if (prompt !== undefined) return Result.succeed(promptInput(prompt))
  if (messages !== undefined) {
    return Result.succeed(
      wellFormedInput(
        create(RunInputSchema, {
          kind: {
            case: "chat",
            value: {
              messages: messages.map((message) => ({
                role: roles[message.role],
                parts: [{ content: { case: "text" as const, value: message.content } }],
                name: message.name ?? "",
                toolCallId: message.tool_call_id ?? ""
              }))
            }
          }
        })
      )
    )
  }
  return parseInput(input as JsonValue)
}

const parseInput = (input: JsonValue): Result.Result<RunInput, string> => {
  try {
    const parsed = fromJson(RunInputSchema, input)
    if (parsed.kind.case === undefined)
      return Result.fail("input: one of chat, prompt and embed must be given")
    return Result.succeed(wellFormedInput(parsed))
  } catch (error) {
    const detail = error instanceof Error ? withoutText(error.message) : "not understood"
    return Result.fail(`input: ${detail.slice(0, MAX_DETAIL)}`)
  }
}

/** Ends the parser's message before a value that it quotes, which may be a prompt; names of unknown keys stay. */
const withoutText = (message: string): string => {
  const quote = message.indexOf('"')
  if (quote === -1 || /^: key "\w{1,64}" is unknown$/.test(message.slice(quote - 6))) return message
  return `${message.slice(0, quote)}a text that does not fit`
}

/** The run that a submission asks for, or a sentence about what is wrong with it. */
export const toRunSpec = (submission: RunSubmission, caller: string): Result.Result<RunSpec, string> =>
  Result.map(inputOf(submission), (input) => ({
    ...toNeed(submission),
    input,
    stream: submission.stream ?? true,
    detached: submission.detached ?? false,
    caller,
    ...(submission.timeout_ms === undefined ? {} : { timeoutMs: submission.timeout_ms })
  }))

/** What the selection needs to know. */
export const toNeed = (need: RunNeed): Pick<RunSpec, "adapter" | "target" | "labels" | "session"> => ({
  adapter: need.adapter,
  target: need.target,
  ...(need.labels === undefined ? {} : { labels: need.labels }),
  ...(need.session === undefined ? {} : { session: need.session })
})
