// Looks through the bytes of a frame before objects are made of them: nesting, lengths, wire types, counts. What
// passes can be decoded in bounded time and memory; protobuf-es by itself bounds the depth but neither counts nor
// wire types. It also counts what this version does not know, since the decoder drops that silently.

import type { DescField, DescMessage } from "@bufbuild/protobuf"
import { ScalarType } from "@bufbuild/protobuf"
import { WireType } from "@bufbuild/protobuf/wire"
import { type FrameBounds, MAX_DEPTH, MAX_ELEMENTS } from "./limits.ts"
import { WireError } from "./WireError.ts"

/** What a look through a frame found. */
export interface FrameScan {
  /** Fields, at any depth, that this version does not know. */
  readonly unknownFields: number
  /** Whether a field of the envelope has a number within `foreign`. */
  readonly foreign: boolean
}

/** Field numbers of an envelope that belong to the other direction, both ends included. */
export interface ForeignNumbers {
  readonly from: number
  readonly to: number
}

interface FieldPlan {
  readonly name: string
  readonly wireType: WireType
  /** Bytes of one packed value; 0 for varints, -1 for what cannot be packed. */
  readonly packedWidth: number
  readonly child: MessagePlan | undefined
  /** Elements that one message may have; Infinity if only the bounds of the frame count. */
  readonly limit: number
  /** The place of this field's count among those of its message. */
  readonly counter: number
}

interface MessagePlan {
  readonly fields: Map<number, FieldPlan>
  readonly counters: number
}

const plans = new Map<string, MessagePlan>()

const planOf = (message: DescMessage): MessagePlan => {
  const known = plans.get(message.typeName)
  if (known !== undefined) return known
  const fields = new Map<number, FieldPlan>()
  const limited = message.fields.filter((field) => MAX_ELEMENTS[nameOf(field)] !== undefined)
  const plan: MessagePlan = { fields, counters: limited.length }
  // Registered before its fields, because google.protobuf.Value contains itself.
  plans.set(message.typeName, plan)
  for (const field of message.fields) {
    fields.set(field.number, {
      name: nameOf(field),
      ...shapeOf(field),
      limit: MAX_ELEMENTS[nameOf(field)] ?? Number.POSITIVE_INFINITY,
      counter: limited.indexOf(field)
    })
  }
  return plan
}

const nameOf = (field: DescField): string => `${field.parent.typeName}.${field.name}`

const shapeOf = (field: DescField): Pick<FieldPlan, "wireType" | "packedWidth" | "child"> => {
  switch (field.fieldKind) {
    case "message":
      return nested(planOf(field.message))
    case "map":
      return nested(entryPlan(field))
    case "enum":
      return { wireType: WireType.Varint, packedWidth: -1, child: undefined }
    case "scalar":
      return { ...scalarShape(field.scalar), packedWidth: -1 }
    case "list":
      if (field.listKind === "message") return nested(planOf(field.message))
      return scalarShape(field.listKind === "enum" ? ScalarType.INT32 : field.scalar)
  }
}

const nested = (child: MessagePlan): Pick<FieldPlan, "wireType" | "packedWidth" | "child"> => ({
  wireType: WireType.LengthDelimited,
  packedWidth: -1,
  child
})

/** A map is a repeated message with the key as field 1 and the value as field 2. */
const entryPlan = (field: DescField & { readonly fieldKind: "map" }): MessagePlan => {
  const part = (number: number, shape: Pick<FieldPlan, "wireType" | "packedWidth" | "child">) =>
    [
      number,
      { name: nameOf(field), ...shape, packedWidth: -1, limit: Number.POSITIVE_INFINITY, counter: -1 }
    ] as const
  const value =
    field.mapKind === "message"
      ? nested(planOf(field.message))
      : scalarShape(field.mapKind === "enum" ? ScalarType.INT32 : field.scalar)
  return { fields: new Map([part(1, scalarShape(field.mapKey)), part(2, value)]), counters: 0 }
}

const scalarShape = (type: ScalarType): Pick<FieldPlan, "wireType" | "packedWidth" | "child"> => {
  switch (type) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return { wireType: WireType.LengthDelimited, packedWidth: -1, child: undefined }
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return { wireType: WireType.Bit64, packedWidth: 8, child: undefined }
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return { wireType: WireType.Bit32, packedWidth: 4, child: undefined }
    default:
      return { wireType: WireType.Varint, packedWidth: 0, child: undefined }
  }
}

/**
 * Looks through `bytes` as a message of `schema`. Throws a `WireError` for bytes that are no such message
 * (malformed), nest too deeply (too_deep) or hold more than the bounds allow (too_many).
 */
export const scanFrame = (
  schema: DescMessage,
  bytes: Uint8Array,
  bounds: FrameBounds,
  foreign: ForeignNumbers
): FrameScan => {
  const scanner = new Scanner(bytes, bounds, schema.name)
  let anyForeign = false
  scanner.message(planOf(schema), bytes.length, 1, (number) => {
    if (number >= foreign.from && number <= foreign.to) anyForeign = true
  })
  return { unknownFields: scanner.unknownFields, foreign: anyForeign }
}

class Scanner {
  unknownFields = 0
  private pos = 0
  private fields = 0
  private messages = 0
  private values = 0
  private readonly bytes: Uint8Array
  private readonly bounds: FrameBounds
  private readonly envelope: string

  constructor(bytes: Uint8Array, bounds: FrameBounds, envelope: string) {
    this.bytes = bytes
    this.bounds = bounds
    this.envelope = envelope
  }

  message(plan: MessagePlan, end: number, depth: number, seen?: (number: number) => void): void {
    if (depth > MAX_DEPTH) throw this.tooDeep()
    const counts = plan.counters === 0 ? undefined : new Uint32Array(plan.counters)
    while (this.pos < end) {
      const tag = this.tag(end)
      const number = tag >>> 3
      const wireType = tag & 7
      seen?.(number)
      const field = plan.fields.get(number)
      if (field === undefined) {
        this.unknownFields++
        this.skip(wireType, number, end, depth)
        continue
      }
      let elements = 1
      if (wireType === field.wireType) {
        if (field.child === undefined) {
          this.skip(wireType, number, end, depth)
        } else {
          if (++this.messages > this.bounds.messages) {
            throw this.tooMany(`nested messages`, this.bounds.messages)
          }
          this.message(field.child, this.length(end), depth + 1)
        }
      } else if (wireType === WireType.LengthDelimited && field.packedWidth >= 0) {
        elements = this.packed(field, end)
      } else {
        throw this.malformed(`field ${field.name} has wire type ${wireType} instead of ${field.wireType}`)
      }
      if (counts !== undefined && field.counter >= 0) {
        const count = (counts[field.counter] ?? 0) + elements
        if (count > field.limit) throw this.tooMany(`elements in ${field.name}`, field.limit)
        counts[field.counter] = count
      }
    }
  }

  private tag(end: number): number {
    if (++this.fields > this.bounds.fields) throw this.tooMany("fields", this.bounds.fields)
    const start = this.pos
    const tag = this.varint32(end)
    // A tag is 32 bits: five bytes, of the last of them four bits.
    const length = this.pos - start
    if (length > 5 || (length === 5 && (this.bytes[this.pos - 1] ?? 0) > 0x0f)) {
      throw this.malformed(`the tag at byte ${start} is larger than 32 bits`)
    }
    if (tag >>> 3 === 0) throw this.malformed(`the field number at byte ${start} is 0`)
    return tag
  }

  private skip(wireType: number, number: number, end: number, depth: number): void {
    switch (wireType) {
      case WireType.Varint:
        this.varint32(end)
        return
      case WireType.Bit64:
        this.advance(8, end)
        return
      case WireType.Bit32:
        this.advance(4, end)
        return
      case WireType.LengthDelimited:
        this.pos = this.length(end)
        return
      case WireType.StartGroup:
        this.group(number, end, depth + 1)
        return
      default:
        throw this.malformed(`field ${number} has wire type ${wireType}, which begins no field`)
    }
  }

  /** No message of the protocol has groups; an unknown field may be one. */
  private group(number: number, end: number, depth: number): void {
    if (depth > MAX_DEPTH) throw this.tooDeep()
    while (this.pos < end) {
      const tag = this.tag(end)
      if ((tag & 7) === WireType.EndGroup) {
        if (tag >>> 3 === number) return
        throw this.malformed(`a group of field ${number} is ended as field ${tag >>> 3}`)
      }
      this.unknownFields++
      this.skip(tag & 7, tag >>> 3, end, depth)
    }
    throw this.malformed(`a group of field ${number} does not end`)
  }

  private packed(field: FieldPlan, outerEnd: number): number {
    const end = this.length(outerEnd)
    let count = 0
    if (field.packedWidth > 0) {
      count = (end - this.pos) / field.packedWidth
      if (!Number.isInteger(count)) throw this.malformed(`the packed values of ${field.name} are cut off`)
      this.pos = end
    } else {
      while (this.pos < end) {
        this.varint32(end)
        count++
      }
    }
    this.values += count
    if (this.values > this.bounds.values) throw this.tooMany("packed values", this.bounds.values)
    return count
  }

  /** Reads a length; answers where what it measures ends. */
  private length(end: number): number {
    const length = this.varint32(end)
    if (length > end - this.pos) {
      throw this.malformed(`a length of ${length} at byte ${this.pos} goes beyond its message`)
    }
    return this.pos + length
  }

  private varint32(end: number): number {
    let value = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.pos >= end) throw this.malformed(`it ends within a number at byte ${this.pos}`)
      const byte = this.bytes[this.pos++] ?? 0
      if (shift < 28) value |= (byte & 0x7f) << shift
      else if (shift === 28) value |= (byte & 0x0f) << 28
      if (byte < 0x80) return value >>> 0
    }
    throw this.malformed(`the number that ends at byte ${this.pos} is longer than ten bytes`)
  }

  private advance(count: number, end: number): void {
    if (count > end - this.pos) throw this.malformed(`it ends within a value at byte ${this.pos}`)
    this.pos += count
  }

  private malformed(what: string): WireError {
    return new WireError("malformed", `the frame is no ${this.envelope}: ${what}`)
  }

  private tooMany(what: string, limit: number): WireError {
    return new WireError(
      "too_many",
      `the ${this.envelope} has too many ${what}: at most ${limit} are allowed`
    )
  }

  private tooDeep(): WireError {
    return new WireError("too_deep", `the ${this.envelope} is nested more than ${MAX_DEPTH} levels deep`)
  }
}
