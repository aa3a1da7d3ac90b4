// Figures as people say them.

/** A duration in milliseconds: `340 ms`, `1.2 s`, `2 min 5 s`, `3 h 4 min`. */
export const durationInWords = (ms: number): string => {
  if (ms < 1) return `${Math.max(0, Math.round(ms * 100) / 100)} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** A count with its noun: `1 run`, `3 runs`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/** Labels as `key=value`, separated by spaces. */
export const labelsInWords = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(" ")
