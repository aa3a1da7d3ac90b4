// Turns bytes that were looked through into a generated message, and what protobuf-es throws into the one error of
// this codec. Unknown fields are dropped here: they must not reach another node or a client.

import type { DescMessage, MessageShape } from "@bufbuild/protobuf"
import { fromBinary } from "@bufbuild/protobuf"
import { WireError } from "./WireError.ts"

/** The message of `bytes`, which `scanFrame` has passed. Throws a `WireError` for text that is not UTF-8. */
export const decodeMessage = <Desc extends DescMessage>(
  schema: Desc,
  bytes: Uint8Array
): MessageShape<Desc> => {
  try {
    return fromBinary(schema, bytes, { readUnknownFields: false })
  } catch (cause) {
    if (cause instanceof TypeError && "code" in cause && cause.code === "ERR_ENCODING_INVALID_ENCODED_DATA") {
      throw new WireError("invalid_utf8", `the ${schema.name} holds text that is not valid UTF-8`, { cause })
    }
    const detail = cause instanceof Error ? cause.message : String(cause)
    throw new WireError("malformed", `the frame is no ${schema.name}: ${detail}`, { cause })
  }
}
