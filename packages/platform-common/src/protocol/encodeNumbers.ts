// Writes the envelopes whose body is one or two numbers: acknowledgements, pings and pongs. An edge writes an
// acknowledgement per run and turn, so these skip the general writer's buffer, a third of a microsecond each.

const UINT32_MAX = 0xffff_ffff

/**
 * The bytes of an envelope with the body of `tag` (field number << 3 | 2), in it field 1 with `first` and field 2
 * with `second`; a 0 is not written. Throws a `RangeError` if one is not an unsigned 32-bit integer.
 */
export const encodeNumbers = (tag: number, first: number, second: number): Uint8Array => {
  requireUint32(first)
  requireUint32(second)
  const body = (first === 0 ? 0 : 1 + size(first)) + (second === 0 ? 0 : 1 + size(second))
  const bytes = new Uint8Array(size(tag) + 1 + body)
  let at = put(bytes, 0, tag)
  // At most 12, so the length is one byte.
  bytes[at++] = body
  if (first !== 0) {
    bytes[at++] = 1 << 3
    at = put(bytes, at, first)
  }
  if (second !== 0) {
    bytes[at++] = 2 << 3
    put(bytes, at, second)
  }
  return bytes
}

const requireUint32 = (value: number): void => {
  if (!Number.isInteger(value) || value < 0 || value > UINT32_MAX) {
    throw new RangeError(`${value} is not an unsigned 32-bit integer`)
  }
}

const size = (value: number): number =>
  value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5

/** Writes a varint; answers where it ends. */
const put = (bytes: Uint8Array, start: number, value: number): number => {
  let at = start
  let left = value
  while (left > 0x7f) {
    bytes[at++] = (left & 0x7f) | 0x80
    left >>>= 7
  }
  bytes[at++] = left
  return at
}
