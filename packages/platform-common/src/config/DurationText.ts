// Durations as the configuration writes them: "500ms", "30s", "5m", "1h". Decoded to Effect's Duration.

import { Duration, Schema, SchemaGetter } from "effect"

/** Timers of the runtime hold 2^31-1 ms; a longer one would fire at once. */
const MAX_MILLIS = 2 ** 31 - 1

const unitMillis = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const
const units = ["h", "m", "s", "ms"] as const

const toMillis = (text: string): number => {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text)
  return match === null ? Number.NaN : Number(match[1]) * unitMillis[match[2] as keyof typeof unitMillis]
}

/** The shortest exact text of a duration. */
export const formatDuration = (duration: Duration.Duration): string => {
  const millis = Duration.toMillis(duration)
  const unit = millis === 0 ? "s" : (units.find((name) => millis % unitMillis[name] === 0) ?? "ms")
  return `${millis / unitMillis[unit]}${unit}`
}

const durationText = (minMillis: number, expected: string) =>
  Schema.String.annotate({ expected })
    .check(
      Schema.isPattern(/^\d+(\.\d+)?(ms|s|m|h)$/u, { expected }),
      Schema.makeFilter((text: string) => !(toMillis(text) < minMillis), { expected }),
      Schema.makeFilter((text: string) => !(toMillis(text) > MAX_MILLIS), {
        expected: "a duration of at most 24 days"
      })
    )
    .pipe(
      Schema.decodeTo(Schema.Duration, {
        decode: SchemaGetter.transform((text: string) => Duration.millis(toMillis(text))),
        encode: SchemaGetter.transform(formatDuration)
      }),
      Schema.annotate({ configType: "duration" })
    )

/** A duration of 1 ms to 24 days. */
export const DurationText = durationText(
  1,
  "a duration above zero with its unit, such as 500ms, 30s, 5m or 1h"
)

/** A duration that may be zero. */
export const DurationOrZeroText = durationText(
  0,
  "a duration with its unit, such as 0s, 500ms, 30s, 5m or 1h"
)
