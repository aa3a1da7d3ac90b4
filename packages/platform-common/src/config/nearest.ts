// Spelling suggestions.

const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = a[i - 1] === b[j - 1] ? row[j - 1]! : row[j - 1]! + 1
      next.push(Math.min(swap, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}

/** The known word that a misspelt one is closest to, unless all are far away. */
export const nearest = (word: string, known: ReadonlyArray<string>): string | undefined => {
  if (word.length > 64) return undefined
  const lower = word.toLowerCase().replaceAll("-", "_")
  let best: string | undefined
  let least = Math.max(2, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    const far = distance(lower, candidate.toLowerCase())
    if (far < least && far < candidate.length) {
      best = candidate
      least = far
    }
  }
  return best
}
