// Arbitrary events of a run for property tests, in the form that decoding gives: what is empty is absent. Texts mix
// scripts, joined emoji, control characters and, where asked for, halves of surrogate pairs.

import { Arbitrary, Schema } from "effect"
import type { NodeRunEvent, TokenLogprob, TokenUsage } from "../RunEvent.ts"

const whole = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 300 })))

/** Any unsigned 32-bit integer, the small and the largest ones often. */
export const arbitraryUint32: Arbitrary.Arbitrary<number> = oneOf<number>(
  whole,
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff_ffff }))),
  Arbitrary.Constant(0xffff_ffff)
)

const positive = Arbitrary.map(arbitraryUint32, (value) => Math.max(1, value))

const wellFormedPieces = [
  "a",
  "word ",
  "é",
  "안녕하세요",
  "汉字",
  "👩‍👩‍👧‍👦",
  "𝄞",
  "\u0000",
  "\ufeff",
  "\ufffd",
  "\n\r\t",
  "\u001b[31m",
  "plain text of more than thirty-two letters ",
  "가나다라마바사아자차카타파하".repeat(12)
]

const brokenPieces = [...wellFormedPieces, "\ud83d", "\udc69", "\ud800", "\udfff"]

/** Text of valid Unicode. */
export const arbitraryText: Arbitrary.Arbitrary<string> = textOf(wellFormedPieces)

/** Text that may have lone surrogates. */
export const arbitraryBrokenText: Arbitrary.Arbitrary<string> = textOf(brokenPieces)

function oneOf<A>(...choices: ReadonlyArray<Arbitrary.Arbitrary<A>>): Arbitrary.Arbitrary<A> {
  const index = Arbitrary.schema(Schema.Literals(choices.map((_, at) => at)))
  return Arbitrary.flatMap(index, (at) => choices[at]!)
}

function textOf(pieces: ReadonlyArray<string>): Arbitrary.Arbitrary<string> {
  return Arbitrary.map(
    Arbitrary.array(Arbitrary.schema(Schema.Literals(pieces)), { maxLength: 12 }),
    (parts) => parts.join("")
  )
}

const optional = <A>(arbitrary: Arbitrary.Arbitrary<A>): Arbitrary.Arbitrary<A | undefined> =>
  oneOf<A | undefined>(Arbitrary.Constant(undefined), arbitrary)

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

/** Leaves out what is undefined. The caller's type says which members are optional. */
const compact = <T extends object>(value: T): Defined<T> =>
  Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as Defined<T>

/** Any double, those that are special often. */
const double = oneOf<number>(
  Arbitrary.schema(Schema.Finite),
  ...[0, -0, -0.25, 1e308, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN].map((value) =>
    Arbitrary.Constant<number>(value)
  )
)

const finishReason = Arbitrary.schema(Schema.Literals(["stop", "length", "tool_calls", "content_filter"]))

const usage: Arbitrary.Arbitrary<TokenUsage> = Arbitrary.map(
  Arbitrary.all({
    inputTokens: optional(arbitraryUint32),
    outputTokens: optional(arbitraryUint32),
    cachedInputTokens: optional(arbitraryUint32),
    reasoningTokens: optional(arbitraryUint32)
  }),
  compact
)

/** Events whose texts are made by `text`. */
const eventsOf = (text: Arbitrary.Arbitrary<string>): Arbitrary.Arbitrary<NodeRunEvent> => {
  const filled = Arbitrary.map(text, (value) => value || "x")
  // Whole code points: a cut through a pair would make a lone surrogate.
  const word = Arbitrary.map(filled, (value) => [...value].slice(0, 20).join(""))
  const bytes = Arbitrary.map(Arbitrary.array(whole, { minLength: 1, maxLength: 8 }), (values) =>
    Uint8Array.from(values)
  )
  const top = Arbitrary.map(Arbitrary.all({ token: text, logprob: double, bytes: optional(bytes) }), compact)
  const logprob: Arbitrary.Arbitrary<TokenLogprob> = Arbitrary.map(
    Arbitrary.all({
      token: text,
      logprob: double,
      bytes: optional(bytes),
      top: optional(Arbitrary.array(top, { minLength: 1, maxLength: 3 }))
    }),
    compact
  )
  const type = <const T extends string>(value: T) => Arbitrary.Constant(value)
  return oneOf<NodeRunEvent>(
    Arbitrary.map(Arbitrary.all({ type: type("started"), backendTarget: optional(word) }), compact),
    Arbitrary.map(
      Arbitrary.all({
        type: type("delta"),
        choice: arbitraryUint32,
        kind: Arbitrary.schema(Schema.Literals(["text", "reasoning", "refusal"])),
        text,
        logprobs: optional(Arbitrary.array(logprob, { minLength: 1, maxLength: 4 }))
      }),
      compact
    ),
    Arbitrary.map(
      Arbitrary.all({
        type: type("delta"),
        choice: arbitraryUint32,
        kind: type("tool_call"),
        index: arbitraryUint32,
        id: optional(filled),
        name: optional(filled),
        arguments: text
      }),
      compact
    ),
    Arbitrary.all({
      type: type("delta"),
      choice: arbitraryUint32,
      kind: type("output"),
      channel: Arbitrary.schema(Schema.Literals(["stdout", "stderr"])),
      text
    }),
    Arbitrary.all({
      type: type("delta"),
      choice: arbitraryUint32,
      kind: type("embedding"),
      index: arbitraryUint32,
      values: Arbitrary.array(Arbitrary.map(double, Math.fround), { maxLength: 40 })
    }),
    Arbitrary.all({ type: type("usage"), usage }),
    Arbitrary.map(
      Arbitrary.all({
        type: type("completed"),
        finishReason,
        usage: optional(usage),
        choiceFinishReasons: optional(
          Arbitrary.map(
            Arbitrary.array(Arbitrary.all([arbitraryUint32, finishReason]), { minLength: 1, maxLength: 3 }),
            Object.fromEntries
          )
        ),
        rawFinishReason: optional(word)
      }),
      compact
    ),
    Arbitrary.map(
      Arbitrary.all({
        type: type("failed"),
        code: Arbitrary.schema(
          Schema.Literals(["adapter_error", "rejected", "invalid_input", "timeout", "limit", "internal"])
        ),
        message: text,
        retryable: Arbitrary.schema(Schema.Boolean),
        backendStatus: optional(positive),
        backendCode: optional(word),
        retryAfterMs: optional(positive)
      }),
      compact
    ),
    Arbitrary.all({ type: type("cancelled"), reason: text })
  )
}

/** Any event of a run with texts of valid Unicode. */
export const arbitraryRunEvent: Arbitrary.Arbitrary<NodeRunEvent> = eventsOf(arbitraryText)

/** Any event of a run; its texts may have lone surrogates. */
export const arbitraryBrokenRunEvent: Arbitrary.Arbitrary<NodeRunEvent> = eventsOf(arbitraryBrokenText)
