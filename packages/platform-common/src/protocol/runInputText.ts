// Makes a run's input from a text and a text from a run's input, for the console, the bundled fake node and adapters
// whose backend takes one prompt.

import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import {
  type ChatMessage,
  type ContentPart,
  Role,
  type RunInput,
  RunInputSchema
} from "../gen/iop/v1/run_input_pb.ts"

/** A conversation of one message of the user. */
export const chatInput = (text: string): RunInput =>
  create(RunInputSchema, {
    kind: {
      case: "chat",
      value: {
        messages: [{ role: Role.USER, parts: [{ content: { case: "text", value: text.toWellFormed() } }] }]
      }
    }
  })

/** A text to be continued. */
export const promptInput = (text: string): RunInput =>
  create(RunInputSchema, { kind: { case: "prompt", value: { text: text.toWellFormed() } } })

/**
 * The input as one prompt.
 *
 * A prompt is its text. Of texts to embed, each is a line; tokens are `[N tokens]`. A chat whose only message is the
 * user's is that message's text. Any other chat is its messages, each as `role: text` (with a name,
 * `role (name): text`), an empty line between them and `assistant:` at the end. Within a message its parts follow
 * each other on lines of their own: text as it is, anything else as `[image]`, `[audio]` or `[file]` (with its name
 * where it has one), then each tool call as `[call name arguments]`. Thinking and refusals are left out.
 */
export const flattenInput = (input: RunInput): string => {
  const kind = input.kind
  switch (kind.case) {
    case "prompt":
      return kind.value.text
    case "embed":
      return kind.value.items
        .map(({ content }) =>
          content.case === "tokens" ? `[${content.value.tokens.length} tokens]` : (content.value ?? "")
        )
        .join("\n")
    case "chat": {
      const messages = kind.value.messages
      const only = messages[0]
      if (only !== undefined && messages.length === 1 && only.role === Role.USER) return textOf(only)
      return [...messages.map((message) => `${speaker(message)}: ${textOf(message)}`), "assistant:"].join(
        "\n\n"
      )
    }
    case undefined:
      return ""
  }
}

const speaker = (message: ChatMessage): string => {
  const role = roleName(message.role)
  return message.name === "" ? role : `${role} (${message.name})`
}

const roleName = (role: Role): string => {
  switch (role) {
    case Role.SYSTEM:
    case Role.DEVELOPER:
      return "system"
    case Role.ASSISTANT:
      return "assistant"
    case Role.TOOL:
      return "tool"
    default:
      return "user"
  }
}

const textOf = (message: ChatMessage): string =>
  [
    ...message.parts.map(partText),
    ...message.toolCalls.map((call) => `[call ${call.name} ${call.arguments}]`)
  ].join("\n")

const partText = ({ content }: ContentPart): string => {
  switch (content.case) {
    case "text":
      return content.value
    case "image":
      return "[image]"
    case "audio":
      return "[audio]"
    case "file":
      return content.value.filename === "" ? "[file]" : `[file ${content.value.filename}]`
    case undefined:
      return ""
  }
}

/**
 * The input with each lone surrogate in its texts, keys included, replaced by U+FFFD: what its encoded form holds.
 * The same object if there is none.
 */
export const wellFormedInput = (input: RunInput): RunInput =>
  isWellFormed(input) ? input : fromBinary(RunInputSchema, toBinary(RunInputSchema, input))

/** Looks at every string with a list of its own instead of the stack: parameters nest as deeply as callers like. */
const isWellFormed = (input: RunInput): boolean => {
  const left: Array<unknown> = [input]
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value === "string") {
      if (!value.isWellFormed()) return false
    } else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
      for (const [key, item] of Object.entries(value)) {
        if (!key.isWellFormed()) return false
        if (typeof item === "string" || typeof item === "object") left.push(item)
      }
    }
  }
  return true
}
