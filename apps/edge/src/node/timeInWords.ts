// A stretch of time as people say it about a node: how long it has been away.

/** Milliseconds as `12 s`, `5 min`, `3 h 4 min` or `2 d 3 h`. */
export const timeInWords = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}
