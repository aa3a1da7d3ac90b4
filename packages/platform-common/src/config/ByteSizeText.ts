// Sizes as the configuration writes them: "256KiB", "1MiB" or a plain number of bytes. Decoded to a number of bytes.

import { Schema, SchemaGetter } from "effect"

const unitBytes = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const
const units = ["GiB", "MiB", "KiB"] as const

const toBytes = (size: string | number): number => {
  if (typeof size === "number") return size
  const match = /^(\d+)(B|KiB|MiB|GiB)$/.exec(size)
  return match === null ? Number.NaN : Number(match[1]) * unitBytes[match[2] as keyof typeof unitBytes]
}

/** The shortest exact text of a number of bytes. */
export const formatByteSize = (bytes: number): string | number => {
  const unit = units.find((name) => bytes >= unitBytes[name] && bytes % unitBytes[name] === 0)
  return unit === undefined ? bytes : `${bytes / unitBytes[unit]}${unit}`
}

/** A size between two numbers of bytes, both included. */
export const byteSizeText = (min: number, max: number) => {
  const expected = `a size from ${formatByteSize(min)} to ${formatByteSize(max)}, such as 256KiB, 1MiB or a number of bytes`
  return Schema.Union([
    Schema.Int,
    Schema.String.check(Schema.isPattern(/^\d+(B|KiB|MiB|GiB)$/u, { expected }))
  ])
    .annotate({ expected })
    .check(
      Schema.makeFilter((size: string | number) => !(toBytes(size) < min || toBytes(size) > max), {
        expected
      })
    )
    .pipe(
      Schema.decodeTo(Schema.Number, {
        decode: SchemaGetter.transform(toBytes),
        encode: SchemaGetter.transform(formatByteSize)
      }),
      Schema.annotate({ configType: "size" })
    )
}
