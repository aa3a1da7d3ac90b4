// Protobuf by hand, for messages that no library writes: unknown fields, wrong types, endless nesting.

/** An unsigned integer as a varint. */
export const varint = (value: number): Buffer => {
  const bytes: Array<number> = []
  let rest = value
  while (rest > 127) {
    bytes.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}

const tag = (field: number, wireType: number): Buffer => varint(field * 8 + wireType)

/** A field with a number. */
export const numberField = (field: number, value: number): Buffer =>
  Buffer.concat([tag(field, 0), varint(value)])

/** A field with bytes: a message, a text or bytes. */
export const bytesField = (field: number, value: Uint8Array): Buffer =>
  Buffer.concat([tag(field, 2), varint(value.length), value])

/** Groups within each other, so many levels of them, in an unknown field. */
export const nestedGroups = (levels: number): Buffer =>
  Buffer.concat([
    Buffer.concat(Array.from({ length: levels }, () => tag(99, 3))),
    Buffer.concat(Array.from({ length: levels }, () => tag(99, 4)))
  ])

/** So many fields that no version knows, three bytes each. */
export const manyFields = (count: number): Buffer =>
  Buffer.alloc(count * 3, Buffer.concat([tag(99, 0), varint(1)]))

/** A known field with bytes in place of its number. */
export const wrongWireType = (body: number): Buffer => bytesField(body, bytesField(1, Buffer.from("one")))

/** A body whose length goes beyond the frame. */
export const cutOff = (body: number): Buffer => Buffer.concat([tag(body, 2), varint(4), Buffer.from([8, 1])])

/** A body with a number that has more than ten bytes. */
export const endlessNumber = (body: number): Buffer =>
  bytesField(body, Buffer.concat([tag(1, 0), Buffer.alloc(10, 0xff), Buffer.from([1])]))

/** A field with the number 0. */
export const fieldZero = Buffer.from([0, 1])

/** Bytes that are no UTF-8: half a surrogate pair, encoded as if it were a character. */
export const brokenText = Buffer.from([0x61, 0xed, 0xa0, 0x80])
