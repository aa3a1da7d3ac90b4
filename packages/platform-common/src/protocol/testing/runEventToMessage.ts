// An event of a run as protobuf-es would be given it: the yardstick of the hand-written encoder, in its tests and in
// its benchmark. It shares nothing with what it measures.

import type { MessageInitShape } from "@bufbuild/protobuf"
import { create, toBinary } from "@bufbuild/protobuf"
import { NodeFrameSchema } from "../../gen/iop/v1/frame_pb.ts"
import {
  type DeltaSchema,
  FailureCode,
  FinishReason,
  ProcessOutput_Channel,
  type RunEventSchema
} from "../../gen/iop/v1/run_event_pb.ts"
import type { DeltaEvent, NodeRunEvent } from "../RunEvent.ts"

const finishReasons = {
  stop: FinishReason.STOP,
  length: FinishReason.LENGTH,
  tool_calls: FinishReason.TOOL_CALLS,
  content_filter: FinishReason.CONTENT_FILTER
}

const failureCodes = {
  adapter_error: FailureCode.ADAPTER_ERROR,
  rejected: FailureCode.REJECTED,
  invalid_input: FailureCode.INVALID_INPUT,
  timeout: FailureCode.TIMEOUT,
  limit: FailureCode.LIMIT,
  internal: FailureCode.INTERNAL
}

/** The bytes that protobuf-es makes of the NodeFrame of an event. */
export const runEventFrameByLibrary = (handle: number, seq: number, event: NodeRunEvent): Uint8Array =>
  toBinary(
    NodeFrameSchema,
    create(NodeFrameSchema, {
      body: { case: "runEvent", value: { handle, seq, event: eventToMessage(event) } }
    })
  )

const eventToMessage = (
  event: NodeRunEvent
): NonNullable<MessageInitShape<typeof RunEventSchema>["event"]> => {
  switch (event.type) {
    case "started":
      return { case: "started", value: { backendTarget: event.backendTarget ?? "" } }
    case "delta":
      return { case: "delta", value: deltaToMessage(event) }
    case "usage":
      return { case: "usage", value: event.usage }
    case "completed": {
      const { finishReason, usage, choiceFinishReasons = {}, rawFinishReason = "" } = event
      const choices = Object.entries(choiceFinishReasons).map(([choice, reason]) => [
        choice,
        finishReasons[reason]
      ])
      return {
        case: "completed",
        value: {
          finishReason: finishReasons[finishReason],
          choiceFinishReasons: Object.fromEntries(choices),
          rawFinishReason,
          ...(usage === undefined ? {} : { usage })
        }
      }
    }
    case "failed":
      return {
        case: "failed",
        value: {
          code: failureCodes[event.code],
          message: event.message,
          retryable: event.retryable,
          backendStatus: event.backendStatus ?? 0,
          backendCode: event.backendCode ?? "",
          retryAfterMs: event.retryAfterMs ?? 0
        }
      }
    case "cancelled":
      return { case: "cancelled", value: { reason: event.reason } }
  }
}

const deltaToMessage = (delta: DeltaEvent): MessageInitShape<typeof DeltaSchema> => {
  const { choice } = delta
  switch (delta.kind) {
    case "text":
    case "reasoning":
    case "refusal":
      return {
        choice,
        content: { case: delta.kind, value: delta.text },
        logprobs: (delta.logprobs ?? []).map(({ top, ...token }) => ({ ...token, top: [...(top ?? [])] }))
      }
    case "tool_call":
      return {
        choice,
        content: {
          case: "toolCall",
          value: {
            index: delta.index,
            id: delta.id ?? "",
            name: delta.name ?? "",
            arguments: delta.arguments
          }
        }
      }
    case "output":
      return {
        choice,
        content: {
          case: "processOutput",
          value: {
            channel: delta.channel === "stdout" ? ProcessOutput_Channel.STDOUT : ProcessOutput_Channel.STDERR,
            text: delta.text
          }
        }
      }
    case "embedding":
      return {
        choice,
        content: { case: "embedding", value: { index: delta.index, values: [...delta.values] } }
      }
  }
}
