// Ids of runs: 26 characters that sort by time of submission, as ULIDs do.
import { randomFillSync } from "node:crypto"

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const TIME_CHARS = 10
const RANDOM_CHARS = 16
/** Random bytes are drawn for many ids at once: one draw costs as much as sixty ids. */
const pool = new Uint8Array(RANDOM_CHARS * 64)
let used = pool.length

/** A new id. `wallMs` is the time of day in milliseconds; it only makes ids sortable. */
export const newRunId = (wallMs: number): string => {
  let time = ""
  let rest = wallMs
  for (let i = 0; i < TIME_CHARS; i++) {
    time = ALPHABET[rest % 32]! + time
    rest = Math.floor(rest / 32)
  }
  if (used >= pool.length) {
    randomFillSync(pool)
    used = 0
  }
  let random = ""
  for (let i = 0; i < RANDOM_CHARS; i++) random += ALPHABET[pool[used + i]! & 31]!
  used += RANDOM_CHARS
  return time + random
}
