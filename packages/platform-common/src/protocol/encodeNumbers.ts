// Writes the envelopes whose body is one or two numbers: acknowledgements, pings and pongs. An edge writes an
// acknowledgement per run and turn, so these skip the general writer's buffer, a third of a microsecond each.

import { putVarint, requireUint32, varintSize } from "./varint.ts"

/**
 * The bytes of an envelope with the body of `tag` (field number << 3 | 2), in it field 1 with `first` and field 2
 * with `second`; a 0 is not written. Throws a `RangeError` if one is not an unsigned 32-bit integer.
 */
export const encodeNumbers = (tag: number, first: number, second: number): Uint8Array => {
  requireUint32(first)
  requireUint32(second)
  const body = (first === 0 ? 0 : 1 + varintSize(first)) + (second === 0 ? 0 : 1 + varintSize(second))
  const bytes = new Uint8Array(varintSize(tag) + 1 + body)
  let at = putVarint(bytes, 0, tag)
  // At most 12, so the length is one byte.
  bytes[at++] = body
  if (first !== 0) {
    bytes[at++] = 1 << 3
    at = putVarint(bytes, at, first)
  }
  if (second !== 0) {
    bytes[at++] = 2 << 3
    putVarint(bytes, at, second)
  }
  return bytes
}
