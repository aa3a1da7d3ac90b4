// Unsigned 32-bit numbers as protobuf writes them, for the encoders that lay out a frame by themselves.

const UINT32_MAX = 0xffff_ffff

/** Throws a `RangeError` unless the value is an unsigned 32-bit integer. */
export const requireUint32 = (value: number): void => {
  if (!Number.isInteger(value) || value < 0 || value > UINT32_MAX) {
    throw new RangeError(`${value} is not an unsigned 32-bit integer`)
  }
}

/** Bytes of the varint of an unsigned 32-bit integer: 1 to 5. */
export const varintSize = (value: number): number =>
  value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5

/** Writes the varint of an unsigned 32-bit integer from `start`; answers where it ends. */
export const putVarint = (bytes: Uint8Array, start: number, value: number): number => {
  let at = start
  let left = value
  while (left > 0x7f) {
    bytes[at++] = (left & 0x7f) | 0x80
    left >>>= 7
  }
  bytes[at++] = left
  return at
}
