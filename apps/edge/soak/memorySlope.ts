// Whether a process keeps growing: the slope of a line through its resident memory, once it has warmed up.

export interface MemorySample {
  /** Since the first sample. */
  readonly ms: number
  readonly bytes: number
}

const TEN_MINUTES_MS = 600_000
const MB = 1024 * 1024

/** MB per ten minutes over the second half of the samples; 0 when there are too few. */
export const memorySlope = (samples: ReadonlyArray<MemorySample>): number => {
  const half = samples.slice(Math.floor(samples.length / 2))
  if (half.length < 3) return 0
  const meanMs = half.reduce((sum, { ms }) => sum + ms, 0) / half.length
  const meanBytes = half.reduce((sum, { bytes }) => sum + bytes, 0) / half.length
  let covariance = 0
  let variance = 0
  for (const { ms, bytes } of half) {
    covariance += (ms - meanMs) * (bytes - meanBytes)
    variance += (ms - meanMs) ** 2
  }
  return variance === 0 ? 0 : (covariance / variance) * (TEN_MINUTES_MS / MB)
}
