// The one frame that a node writes thousands of times a second: a plain piece of text. It is laid out in place, the
// text first and then what goes before it, from the end to the front, so that nothing is moved or copied. The bytes
// are those of the general encoder; a property test compares them.

import { putVarint, requireUint32, varintSize } from "./varint.ts"

/** The longest text, in UTF-16 units, that is laid out here: a piece larger than that is no frequent one. */
export const MAX_IN_PLACE_LENGTH = 2048

/** Six tags of a byte, and six numbers of up to five. */
const MAX_HEAD = 36

/** Up to this length a loop is faster than the encoder, while the text is ASCII. */
const MAX_LOOP_LENGTH = 32

/**
 * Frames are windows on a piece of memory that they share: to allocate one of 200 bytes costs more than to encode
 * it. Small enough that a frame that waits for its socket keeps little else alive.
 */
const SLAB_BYTES = 16_384

const encoder = new TextEncoder()
let slab = new Uint8Array(SLAB_BYTES)
let used = 0

/**
 * The NodeFrame of a text delta without log probabilities. `contentTag` is that of its kind in Delta. The text has at
 * most `MAX_IN_PLACE_LENGTH` units; its lone surrogates become U+FFFD. Throws a `RangeError` for a number that is no
 * unsigned 32-bit integer.
 */
export const encodeTextDelta = (
  handle: number,
  seq: number,
  contentTag: number,
  choice: number,
  text: string
): Uint8Array => {
  requireUint32(handle)
  requireUint32(seq)
  requireUint32(choice)
  if (used + MAX_HEAD + text.length * 3 > SLAB_BYTES) {
    slab = new Uint8Array(SLAB_BYTES)
    used = 0
  }
  const bytes = slab
  const start = used + MAX_HEAD
  const end = start + putText(bytes, start, text)
  let at = putBefore(bytes, start, end - start)
  bytes[--at] = contentTag
  if (choice !== 0) {
    at = putBefore(bytes, at, choice)
    bytes[--at] = 1 << 3
  }
  at = putBefore(bytes, at, end - at)
  bytes[--at] = (4 << 3) | 2
  if (seq !== 0) {
    at = putBefore(bytes, at, seq)
    bytes[--at] = 2 << 3
  }
  if (handle !== 0) {
    at = putBefore(bytes, at, handle)
    bytes[--at] = 1 << 3
  }
  at = putBefore(bytes, at, end - at)
  bytes[--at] = (4 << 3) | 2
  used = end
  return bytes.subarray(at, end)
}

/** Writes the text as UTF-8; answers how many bytes it took. */
const putText = (bytes: Uint8Array, start: number, text: string): number => {
  const length = text.length
  if (length <= MAX_LOOP_LENGTH) {
    let index = 0
    for (; index < length; index++) {
      const code = text.charCodeAt(index)
      if (code > 0x7f) break
      bytes[start + index] = code
    }
    if (index === length) return length
  }
  return encoder.encodeInto(text, bytes.subarray(start)).written
}

/** Writes a varint that ends where `end` is; answers where it begins. */
const putBefore = (bytes: Uint8Array, end: number, value: number): number => {
  const start = end - varintSize(value)
  putVarint(bytes, start, value)
  return start
}
