// A rule of the specification as this kit judges it: by checks, each on a connection of its own, or by a sentence
// that says why it cannot be judged from this side.

/** One thing that a peer does if it follows the rule. */
export interface Check<Trial> {
  /** What the peer does, as the end of a sentence. */
  readonly name: string
  /**
   * Left out unless asked for: `slow` takes longer than ten seconds by the rule itself; `strict` is about something
   * that a node may leave to its protobuf library.
   */
  readonly extra?: Extra
  /** Throws `RuleBroken` or `NotTestable`. Bounded in time by its waits. */
  readonly run: (trial: Trial) => Promise<void>
}

/** Kinds of checks that are left out unless asked for. */
export type Extra = "slow" | "strict"

/** A rule with its checks; ids are those of proto/README.md. */
export type Rule<Trial> =
  | { readonly id: string; readonly title: string; readonly checks: ReadonlyArray<Check<Trial>> }
  | { readonly id: string; readonly title: string; readonly notTestable: string }

/** How a rule came out. */
export interface RuleResult {
  readonly id: string
  readonly title: string
  readonly outcome: "ok" | "failed" | "not_testable"
  /** What was expected and what came, or why it is not testable; for an `ok` the checks that were left out, if any. */
  readonly detail: string
  /** Milliseconds. */
  readonly ms: number
}
