// A generated RunEvent as an event of a run: the slow way, for frames that the hand-written decoder leaves alone.

import type {
  Delta,
  RunEvent,
  TokenLogprob as TokenLogprobMessage,
  TopLogprob,
  Usage
} from "../gen/iop/v1/run_event_pb.ts"
import type { DeltaEvent, NodeRunEvent, TokenLogprob, TokenUsage } from "./RunEvent.ts"
import {
  cancelledEvent,
  completedEvent,
  embeddingDelta,
  failedEvent,
  outputDelta,
  startedEvent,
  textDelta,
  tokenLogprob,
  tokenUsage,
  toolCallDelta,
  unknownEvent
} from "./runEventParts.ts"

/** The event that a message holds; an empty delta if it is of a kind that this version does not know. */
export const runEventFromMessage = (message: RunEvent): NodeRunEvent => {
  const event = message.event
  switch (event.case) {
    case "started":
      return startedEvent(event.value.backendTarget)
    case "delta":
      return deltaFromMessage(event.value)
    case "usage":
      return { type: "usage", usage: usageFromMessage(event.value) }
    case "completed": {
      const { finishReason, usage, choiceFinishReasons, rawFinishReason } = event.value
      return completedEvent(
        finishReason,
        usage === undefined ? undefined : usageFromMessage(usage),
        choiceFinishReasons,
        rawFinishReason
      )
    }
    case "failed": {
      const { code, message: text, retryable, backendStatus, backendCode, retryAfterMs } = event.value
      return failedEvent(code, text, retryable, backendStatus, backendCode, retryAfterMs)
    }
    case "cancelled":
      return cancelledEvent(event.value.reason)
    case undefined:
      return unknownEvent(0)
  }
}

const deltaFromMessage = (delta: Delta): DeltaEvent => {
  const content = delta.content
  switch (content.case) {
    case "text":
    case "reasoning":
    case "refusal":
      return textDelta(content.case, delta.choice, content.value, delta.logprobs.map(logprobFromMessage))
    case "toolCall": {
      const { index, id, name, arguments: args } = content.value
      return toolCallDelta(delta.choice, index, id, name, args)
    }
    case "processOutput":
      return outputDelta(delta.choice, content.value.channel, content.value.text)
    case "embedding":
      return embeddingDelta(delta.choice, content.value.index, content.value.values)
    case undefined:
      return unknownEvent(delta.choice)
  }
}

const logprobFromMessage = (message: TokenLogprobMessage): TokenLogprob =>
  tokenLogprob(message.token, message.logprob, message.bytes, message.top.map(topFromMessage))

const topFromMessage = (message: TopLogprob): TokenLogprob =>
  tokenLogprob(message.token, message.logprob, message.bytes, undefined)

const usageFromMessage = (usage: Usage): TokenUsage =>
  tokenUsage(usage.inputTokens, usage.outputTokens, usage.cachedInputTokens, usage.reasoningTokens)
