// Turns a generated envelope into bytes and makes sure that the other side will take them: a caller's deeply nested
// parameters must fail the one run that has them, not the link that carries it.

import type { DescMessage, MessageShape } from "@bufbuild/protobuf"
import { toBinary } from "@bufbuild/protobuf"
import type { FrameBounds } from "./limits.ts"
import { MAX_DEPTH } from "./limits.ts"
import { type ForeignNumbers, scanFrame } from "./scanFrame.ts"
import { WireError } from "./WireError.ts"

/**
 * The bytes of an envelope. Lone surrogates become U+FFFD. Throws a `WireError` for what the receiver would refuse,
 * and for a value that its field cannot hold.
 */
export const encodeMessage = <Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  bounds: FrameBounds,
  foreign: ForeignNumbers
): Uint8Array => {
  const bytes = write(schema, message)
  scanFrame(schema, bytes, bounds, foreign)
  return bytes
}

const write = <Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Uint8Array => {
  try {
    return toBinary(schema, message, { writeUnknownFields: false })
  } catch (cause) {
    // The writer recurses: thousands of levels end the stack before there are bytes to look through.
    if (cause instanceof RangeError) {
      throw new WireError("too_deep", `the ${schema.name} is nested more than ${MAX_DEPTH} levels deep`, {
        cause
      })
    }
    const detail = cause instanceof Error ? cause.message : String(cause)
    throw new WireError("malformed", `the ${schema.name} cannot be encoded: ${detail}`, { cause })
  }
}
