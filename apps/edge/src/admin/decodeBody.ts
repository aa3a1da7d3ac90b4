// A request's body as a value of a schema. Unknown fields are refused with their path: a misspelt option that is
// silently ignored is worse than an error.
import type { IncomingMessage } from "node:http"
import { Effect, Schema, SchemaIssue } from "effect"
import { HttpProblem } from "../http/HttpProblem.ts"
import { readJson } from "../http/readJson.ts"

const issues = SchemaIssue.makeFormatterStandardSchemaV1()
/** Problems that one answer names; a body with more has the same one again and again. */
const MAX_ISSUES = 10
/** Values in a body; telling what is wrong with each of them takes 3 µs. A conversation of thousands of turns has fewer. */
const MAX_VALUES = 30_000
/** Longest single problem, in characters. */
const MAX_ISSUE = 300

/** The problem of a value that does not fit its schema: each place with what is wrong there. */
export const schemaProblem = (error: Schema.SchemaError, where: string): HttpProblem => {
  const found = issues(error.issue).issues.map(({ path, message }) => {
    const place = (path ?? [])
      .map((part) => (typeof part === "object" ? part.key : part))
      .map(String)
      .join(".")
    const what = message === "Expected no excess property" ? "there is no such field" : lowerFirst(message)
    return `${place === "" ? where : place}: ${what}`.slice(0, MAX_ISSUE)
  })
  const more = found.length > MAX_ISSUES ? ` (and ${found.length - MAX_ISSUES} more)` : ""
  return new HttpProblem({
    status: 400,
    code: "invalid_request",
    message: `${found.slice(0, MAX_ISSUES).join("; ")}${more}`
  })
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/** A decoder for bodies of the schema; an absent body counts as an empty object. Build it once. */
export const bodyDecoder = <S extends Schema.Codec<unknown, unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(schema, { errors: "all", onExcessProperty: "error" })
  return (request: IncomingMessage, limit: number): Effect.Effect<S["Type"], HttpProblem> =>
    Effect.flatMap(readJson(request, limit, MAX_VALUES), (json) =>
      Effect.mapError(decode(json ?? {}), (error) => schemaProblem(error, "body"))
    )
}
