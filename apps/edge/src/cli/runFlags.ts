// What a run may ask for, on the command line.
import { Option, Schema } from "effect"
import { Argument, Flag } from "effect/cli"
import type { RunNeed } from "../admin/RunSubmission.ts"
import { pairsFlag } from "./plainFlags.ts"

export const needArguments = {
  adapter: Argument.String("adapter").pipe(
    Argument.withDescription("the adapter, as the configuration names it")
  ),
  target: Argument.String("target").pipe(Argument.withDescription("what the adapter executes"))
}

export const needFlags = {
  label: pairsFlag("label").pipe(Flag.withDescription("a label that the node must have; may be repeated")),
  session: Flag.String("session").pipe(
    Flag.withDescription("runs of one session like to meet the same node"),
    Flag.withSchema(Schema.NonEmptyString),
    Flag.optional
  )
}

/** The flags as a need. */
export const needOf = (flags: {
  readonly adapter: string
  readonly target: string
  readonly label: Readonly<Record<string, string>>
  readonly session: Option.Option<string>
}): RunNeed => ({
  adapter: flags.adapter,
  target: flags.target,
  ...(Object.keys(flags.label).length > 0 ? { labels: flags.label } : {}),
  ...(Option.isSome(flags.session) ? { session: flags.session.value } : {})
})
