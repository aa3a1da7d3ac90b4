// Tokens, keys and other values that no output may ever show. Decoded to Redacted.

import { Schema } from "effect"

/**
 * A token or key as it travels in a registration frame or a header: visible ASCII, 1 to 4,096 characters. Anything
 * else could not be sent by the other side.
 */
export const SecretText = Schema.RedactedFromValue(
  Schema.String.annotate({ expected: "a text" }).check(
    Schema.isPattern(/\S/u, { expected: "a secret that is not empty" }),
    Schema.isPattern(/^[\x21-\x7e]*$/u, {
      expected: "a secret without spaces, line breaks and non-ASCII characters"
    }),
    Schema.isMaxLength(4096, { expected: "a secret of at most 4096 characters" })
  )
).annotate({ configType: "secret" })

/** A value that may hold a secret: a header, a variable of a process. */
export const HiddenText = Schema.RedactedFromValue(Schema.String.annotate({ expected: "a text" })).annotate({
  configType: "secret"
})
