// What a person, or a program, is told about the rules.
import type { RuleResult } from "../Rule.ts"

/** Text of the other side may hold anything: control characters are shown and not obeyed. */
const escaped = (text: string): string =>
  text.replace(/\p{Cc}/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** The line of a rule. */
export const lineOf = ({ detail, id, outcome, title }: RuleResult): string => {
  switch (outcome) {
    case "ok":
      return escaped(`ok ${id} ${title}${detail === "" ? "" : ` (${detail})`}`)
    case "failed":
      return escaped(`FAIL ${id} ${detail}`)
    case "not_testable":
      return escaped(`-- ${id} not testable from this side: ${detail}`)
  }
}

/** How many came out how. */
export interface Count {
  readonly ok: number
  readonly failed: number
  readonly notTestable: number
}

/** Counts the results. */
export const countOf = (results: ReadonlyArray<RuleResult>): Count => {
  const of = (outcome: RuleResult["outcome"]) => results.filter((result) => result.outcome === outcome).length
  return { ok: of("ok"), failed: of("failed"), notTestable: of("not_testable") }
}

/** The last line. */
export const countLine = ({ failed, notTestable, ok }: Count): string =>
  `${ok} ok, ${failed} failed, ${notTestable} not testable`
