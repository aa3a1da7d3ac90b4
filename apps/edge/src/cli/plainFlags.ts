// Flags whose mistakes are told in plain words: the flag, what was given, and what it takes.
import { Effect } from "effect"
import { CliError, Flag } from "effect/cli"

const mistake = (message: string) => Effect.fail(new CliError.ValidationError({ message }))

/** A whole number from `minimum` to `maximum`; `what` names it, such as "port". */
export const wholeNumberFlag = (
  name: string,
  { what, minimum, maximum }: { readonly what: string; readonly minimum: number; readonly maximum: number }
): Flag.Flag<number> =>
  Flag.String(name).pipe(
    Flag.mapEffect((text) => {
      const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
      return value >= minimum && value <= maximum
        ? Effect.succeed(value)
        : mistake(`--${name}: ${text === "" ? "nothing" : text} is not a ${what} (${minimum} to ${maximum})`)
    })
  )

/** KEY=VALUE, as often as wanted; the last of a key counts. Empty when the flag is not given. */
export const pairsFlag = (name: string): Flag.Flag<Readonly<Record<string, string>>> =>
  Flag.String(name).pipe(
    Flag.withMetavar("KEY=VALUE"),
    Flag.atLeast(0),
    Flag.mapEffect((texts) => {
      const wrong = texts.find((text) => text.indexOf("=") < 1)
      if (wrong !== undefined) return mistake(`--${name} needs KEY=VALUE, got ${wrong}`)
      return Effect.succeed(
        Object.fromEntries(
          texts.map((text) => {
            const at = text.indexOf("=")
            return [text.slice(0, at), text.slice(at + 1)]
          })
        )
      )
    })
  )
