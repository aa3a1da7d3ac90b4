// Which keys a message may show. A comma or a colon in the wrong place cuts a token in two and makes a key of one half,
// so a key is shown only if it is known, close to one that is, or looks like a word.

import { type ConfigPath, formatPath } from "./ConfigProblem.ts"
import { keysAt } from "./configShape.ts"
import { nearest } from "./nearest.ts"

/** Where the schema says which keys there are, they are lower case. */
const word = /^[a-z][a-z_-]{0,31}$/
/** Labels, variables and headers also have capitals. Digits are what most secrets have and few of these. */
const freeWord = /^[A-Za-z][A-Za-z_-]{0,31}$/

/** Whether a key of the record at a path may be shown. */
export const mayShowKey = (record: ConfigPath, key: string): boolean => {
  const known = keysAt(record)
  if (known.length === 0) return freeWord.test(key)
  return known.includes(key) || word.test(key) || nearest(key, known) !== undefined
}

/** A path for a message; keys that may not be shown are dots. */
export const shownPath = (path: ConfigPath): string =>
  formatPath(
    path.map((part, index) =>
      typeof part === "number" || mayShowKey(path.slice(0, index), part) ? part : "…"
    )
  )
