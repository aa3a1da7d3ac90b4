// What the input of a run costs in memory while the run goes on, about: its texts and bytes.

/** Depth that no input of the wire has (100 at most): what is deeper is not looked at. */
const MAX_DEPTH = 128

/** Bytes of all strings (two per UTF-16 unit) and byte arrays below the value. */
export const inputBytes = (value: unknown, depth = 0): number => {
  if (typeof value === "string") return value.length * 2
  if (value === null || typeof value !== "object" || depth > MAX_DEPTH) return 0
  if (value instanceof Uint8Array) return value.byteLength
  let sum = 0
  for (const child of Object.values(value)) sum += inputBytes(child, depth + 1)
  return sum
}
