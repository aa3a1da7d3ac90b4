// Runs the checks of rules, one after the other, and says how each rule came out.
import { NotTestable, RuleBroken } from "./outcomes.ts"
import type { Check, Extra, Rule, RuleResult } from "./Rule.ts"

/** What is to be run. */
export interface JudgeOptions<Trial> {
  readonly rules: ReadonlyArray<Rule<Trial>>
  /** Makes what one check uses; all of it is cleaned up by `cleanup` when the check is over. */
  readonly trial: (cleanup: AsyncDisposableStack) => Trial | Promise<Trial>
  /** Beginnings of ids, such as R-REG or R-FRAME-3; without any all rules. */
  readonly only: ReadonlyArray<string>
  /** Which checks are run besides the usual ones. */
  readonly extras: ReadonlyArray<Extra>
  /** Called with each result as it comes. */
  readonly onResult: (result: RuleResult) => void
}

/** No check waits longer, in milliseconds, whatever its waits add up to. */
const CHECK_BOUND_MS = 150_000

const whyExtra: Readonly<Record<Extra, string>> = {
  slow: "takes long, add --slow",
  strict: "a node may leave it to its library, add --strict"
}

type Outcome = { readonly kind: "ok" | "failed" | "left_out"; readonly detail: string }

/** Judges by the rules; never fails because of what is judged. */
export const judge = async <Trial>(options: JudgeOptions<Trial>): Promise<ReadonlyArray<RuleResult>> => {
  const results: Array<RuleResult> = []
  for (const rule of options.rules) {
    if (options.only.length > 0 && !options.only.some((start) => matches(rule.id, start))) continue
    const from = performance.now()
    const outcomes: Array<Outcome> = []
    if ("checks" in rule) {
      for (const check of rule.checks) outcomes.push(await runCheck(check, options))
    } else {
      outcomes.push({ kind: "left_out", detail: rule.notTestable })
    }
    const result = {
      id: rule.id,
      title: rule.title,
      ...sum(outcomes),
      ms: Math.round(performance.now() - from)
    }
    results.push(result)
    options.onResult(result)
  }
  return results
}

/** Whether the id is, or begins with, what was asked for: R-REG means R-REG-1 and R-REG-10, R-REG-1 only itself. */
const matches = (id: string, start: string): boolean =>
  id === start || id.startsWith(`${start.replace(/-$/, "")}-`)

const runCheck = async <Trial>(check: Check<Trial>, options: JudgeOptions<Trial>): Promise<Outcome> => {
  if (check.extra !== undefined && !options.extras.includes(check.extra)) {
    return { kind: "left_out", detail: `${check.name}: ${whyExtra[check.extra]}` }
  }
  const cleanup = new AsyncDisposableStack()
  let outcome: Outcome
  try {
    await bounded(check, async () => check.run(await options.trial(cleanup)))
    outcome = { kind: "ok", detail: "" }
  } catch (error) {
    outcome = outcomeOf(check.name, error)
  }
  try {
    await cleanup.disposeAsync()
  } catch (error) {
    // A failure is told by its cause and not by what it left behind.
    if (outcome.kind !== "failed") outcome = outcomeOf(`${check.name}, cleaning up`, error)
  }
  return outcome
}

const outcomeOf = (name: string, error: unknown): Outcome => {
  if (error instanceof NotTestable) return { kind: "left_out", detail: error.message }
  if (error instanceof RuleBroken) {
    return { kind: "failed", detail: `${name}: expected ${error.expected}; came ${error.came}` }
  }
  return { kind: "failed", detail: `${name}: ${error instanceof Error ? error.message : String(error)}` }
}

const bounded = async <Trial>(check: Check<Trial>, work: () => Promise<void>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () =>
        reject(new RuleBroken(`an end of the check ${check.name}`, `nothing within ${CHECK_BOUND_MS} ms`)),
      CHECK_BOUND_MS
    )
  })
  try {
    await Promise.race([work(), late])
  } finally {
    clearTimeout(timer)
  }
}

const sum = (outcomes: ReadonlyArray<Outcome>): Pick<RuleResult, "outcome" | "detail"> => {
  const of = (kind: Outcome["kind"]) => outcomes.filter((outcome) => outcome.kind === kind)
  const failed = of("failed")
  if (failed.length > 0) return { outcome: "failed", detail: failed.map(({ detail }) => detail).join(" | ") }
  const reasons = [...new Set(of("left_out").map(({ detail }) => detail))].join(" | ")
  if (of("ok").length === 0) return { outcome: "not_testable", detail: reasons }
  return { outcome: "ok", detail: reasons === "" ? "" : `not tested: ${reasons}` }
}
