import type { MessageInitShape } from "@bufbuild/protobuf"
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { assert, describe, it } from "@effect/vitest"
import { type ChatInputSchema, Role, RunInputSchema } from "../gen/iop/v1/run_input_pb.ts"
import { chatInput, flattenInput, promptInput, wellFormedInput } from "./runInputText.ts"
import { arbitraryBrokenText, arbitraryText } from "./testing/arbitraryRunEvent.ts"

const chat = (value: MessageInitShape<typeof ChatInputSchema>) =>
  create(RunInputSchema, { kind: { case: "chat", value } })

const text = (value: string) => ({ content: { case: "text", value } }) as const

describe("flattenInput", () => {
  it.prop(
    "gives back the text of a prompt and of a single message of the user",
    { value: arbitraryText },
    ({ value }) => {
      assert.strictEqual(flattenInput(promptInput(value)), value)
      assert.strictEqual(flattenInput(chatInput(value)), value)
    }
  )

  it("writes a conversation as roles and texts, and asks for the next turn", () => {
    const input = chat({
      messages: [
        { role: Role.SYSTEM, parts: [text("Be brief.")] },
        { role: Role.DEVELOPER, parts: [text("In Korean.")] },
        {
          role: Role.USER,
          name: "Ada",
          parts: [text("What is this?"), { content: { case: "image", value: {} } }]
        },
        {
          role: Role.ASSISTANT,
          reasoning: "hidden",
          toolCalls: [{ id: "c1", name: "look", arguments: '{"deep":true}' }]
        },
        { role: Role.TOOL, toolCallId: "c1", parts: [text("a cat")] }
      ]
    })
    assert.strictEqual(
      flattenInput(input),
      [
        "system: Be brief.",
        "system: In Korean.",
        "user (Ada): What is this?\n[image]",
        'assistant: [call look {"deep":true}]',
        "tool: a cat",
        "assistant:"
      ].join("\n\n")
    )
  })

  it("names what is not text", () => {
    const input = chat({
      messages: [
        {
          role: Role.USER,
          parts: [
            { content: { case: "audio", value: {} } },
            { content: { case: "file", value: { filename: "a.pdf" } } },
            { content: { case: "file", value: {} } }
          ]
        }
      ]
    })
    assert.strictEqual(flattenInput(input), "[audio]\n[file a.pdf]\n[file]")
  })

  it("writes each text to embed as a line", () => {
    const input = create(RunInputSchema, {
      kind: {
        case: "embed",
        value: {
          items: [
            { content: { case: "text", value: "one" } },
            { content: { case: "tokens", value: { tokens: [1, 2, 3] } } }
          ]
        }
      }
    })
    assert.strictEqual(flattenInput(input), "one\n[3 tokens]")
  })

  it("is empty for an input of no kind", () => {
    assert.strictEqual(flattenInput(create(RunInputSchema)), "")
  })
})

describe("wellFormedInput", () => {
  it("keeps an input that is well formed", () => {
    const input = chatInput("👩‍👩‍👧‍👦")
    assert.strictEqual(wellFormedInput(input), input)
  })

  it.prop(
    "gives what the encoded form holds",
    { value: arbitraryBrokenText, key: arbitraryBrokenText },
    ({ value, key }) => {
      const input = create(RunInputSchema, {
        kind: { case: "chat", value: { messages: [{ role: Role.USER, parts: [text(value)] }] } },
        parameters: { [key]: { list: [value, 1, null, true] } }
      })
      const wellFormed = wellFormedInput(input)
      assert.deepStrictEqual(wellFormed, fromBinary(RunInputSchema, toBinary(RunInputSchema, input)))
      assert.strictEqual(flattenInput(wellFormed), value.toWellFormed())
    }
  )

  it("looks through parameters of any depth", () => {
    const input = promptInput("p")
    let nested: NonNullable<typeof input.parameters> = {}
    for (let level = 0; level < 100_000; level++) nested = { a: nested }
    input.parameters = nested
    assert.strictEqual(wellFormedInput(input), input)
  })
})
