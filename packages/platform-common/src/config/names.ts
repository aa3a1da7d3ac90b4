// The plain texts and numbers of the configuration: names that end up in listings, metrics and URLs, hosts, ports,
// addresses of servers, whole numbers with bounds.

import { Schema } from "effect"

const text = (expected: string) => Schema.String.annotate({ expected })

const identifier =
  "a name of 1 to 64 letters, digits, dots, hyphens and underscores that starts with a letter or digit"

/** The id or alias of a node, the name of an adapter or a key: safe as a metric label and in a URL. */
export const Identifier = text("a text").check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/u, { expected: identifier })
)

const targetName = "a name of 1 to 256 characters without control characters and outer spaces"

/** A target or an external model name: what servers call their models, slashes and colons included. */
export const TargetName = text("a text").check(
  Schema.isPattern(/^(?=.{1,256}$)[^\s\p{Cc}](?:[^\p{Cc}]*[^\s\p{Cc}])?$/u, { expected: targetName })
)

/** Labels of a node, or the labels that a route asks for. */
export const Labels = Schema.Record(
  Schema.String.check(
    Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/u, {
      expected: "label names of 1 to 63 letters, digits, dots, slashes, hyphens and underscores"
    })
  ),
  text("a text").check(
    Schema.isPattern(/^[^\p{Cc}]{0,128}$/u, {
      expected: "a text of at most 128 characters without control characters"
    })
  )
).annotate({ expected: "a map of label names to texts" })

/** A text that is not empty. */
export const FilledText = text("a text").check(
  Schema.isPattern(/\S/u, { expected: "a text that is not empty" })
)

const address = "a host name or an IP address, without port and scheme"

/** A host to listen on. */
export const Host = text("a text").check(
  Schema.isPattern(/^[A-Za-z0-9._-]+$|^[0-9A-Fa-f:.]+(%[\w.-]+)?$/u, { expected: address })
)

/** A port to listen on; 0 takes any free one. */
export const Port = wholeNumber(0, 65535)

const isHttpUrl = (value: string): boolean => {
  const url = URL.parse(value)
  return url !== null && (url.protocol === "http:" || url.protocol === "https:") && url.hostname !== ""
}

/** The address of an HTTP server. Credentials belong into keys that are kept secret, not into an address. */
export const HttpUrl = text("a text").check(
  Schema.makeFilter(isHttpUrl, { expected: "an address that starts with http:// or https://" }),
  Schema.makeFilter(
    (value: string) => {
      const url = URL.parse(value)
      return url === null || (url.username === "" && url.password === "")
    },
    { expected: "an address without user and password; put them into api_key or headers" }
  )
)

/** A whole number between two bounds, both included. */
export function wholeNumber(min: number, max: number) {
  const expected =
    max === Number.MAX_SAFE_INTEGER
      ? `a whole number of at least ${min}`
      : `a whole number from ${min} to ${max}`
  return Schema.Number.annotate({ expected }).check(
    Schema.isInt({ expected }),
    Schema.isBetween({ minimum: min, maximum: max }, { expected })
  )
}

/** Yes or no. */
export const YesNo = Schema.Boolean.annotate({ expected: "true or false" })

/** Any JSON object. */
export const JsonObject = Schema.Record(Schema.String, Schema.Json).annotate({
  expected: "a map of plain values"
})
