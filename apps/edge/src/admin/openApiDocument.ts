// The OpenAPI document of the admin API: as the description makes it, with how a key is sent, and without what only the
// framework behind it understands.
import * as OpenApi from "effect/http-api/OpenApi"
import { AdminApi } from "./AdminApi.ts"

const securitySchemes = {
  bearer: { type: "http", scheme: "bearer", description: "One of the configured api_keys." },
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "x-api-key",
    description: "The same, in a header of its own."
  }
} as const

/** The value without fields whose names begin with `x-effect-`. */
const withoutExtensions = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutExtensions)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !name.startsWith("x-effect-"))
      .map(([name, field]) => [name, withoutExtensions(field)])
  )
}

/** The document as JSON. */
export const openApiDocument = (): unknown => {
  const made = OpenApi.fromApi(AdminApi)
  return withoutExtensions({
    ...made,
    components: { ...made.components, securitySchemes },
    // Either of them; an edge without api_keys wants none.
    security: [{ bearer: [] }, { apiKey: [] }, {}]
  })
}
