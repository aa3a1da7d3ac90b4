// How a key of the configuration is declared: a schema with its meaning, and a default where it has one. The meaning
// and the default stay on the key, where the JSON Schema, the documentation and the error messages find them.

import { Effect, Schema } from "effect"

/** A key with a default, given as the decoded value. */
export const setting = <A, E>(schema: Schema.Codec<A, E>, value: NoInfer<A>, description: string) =>
  schema.pipe(
    Schema.withDecodingDefaultTypeKey(Effect.succeed(value)),
    Schema.annotateKey({ description, configDefault: Schema.encodeSync(schema)(value) })
  )

/** A key without which there is no sense in the record. */
export const required = <A, E>(schema: Schema.Codec<A, E>, description: string) =>
  schema.pipe(Schema.annotateKey({ description }))

/** A key that may be absent, and is absent then from the decoded value too. */
export const optional = <A, E>(schema: Schema.Codec<A, E>, description: string) =>
  Schema.optionalKey(schema).pipe(Schema.annotateKey({ description }))

/** A record whose keys all have defaults; absent, it has them all. */
export const section = <A, E>(schema: Schema.Codec<A, E>, description: string) =>
  schema.pipe(
    Schema.withDecodingDefaultTypeKey(Effect.succeed(Schema.decodeUnknownSync(schema)({}))),
    Schema.annotateKey({ description, configDefault: {} })
  )

/** A key that the loader fills in from another one where it is absent. `from` says what it is then. */
export const filledIn = <A, E>(schema: Schema.Codec<A, E>, from: string, description: string) =>
  schema.pipe(Schema.annotateKey({ description, configFilledIn: from }))
