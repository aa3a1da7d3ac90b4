// Runs and explanations for people.
import type { ExplanationView, RunView, UsageView } from "../../admin/RunView.ts"
import { counted, durationInWords } from "./inWords.ts"
import { safeLine } from "./safeText.ts"
import { table } from "./table.ts"

/** Tokens in and out; empty when the backend did not say. */
export const tokensInWords = (usage: UsageView | undefined): string => {
  if (usage === undefined) return ""
  const parts = [
    ...(usage.input_tokens === undefined ? [] : [`${usage.input_tokens} in`]),
    ...(usage.output_tokens === undefined ? [] : [`${usage.output_tokens} out`])
  ]
  return parts.join(" ")
}

const outcome = (run: RunView): string =>
  run.failure?.code ?? (run.slot_held ? `${run.phase}, slot held` : run.phase)

export const runsTable = (runs: ReadonlyArray<RunView>): string =>
  runs.length === 0
    ? "no runs"
    : table(
        ["RUN", "STATE", "NODE", "TIME", "TARGET"],
        runs.map((run) => [
          run.id,
          outcome(run),
          run.node ?? "-",
          durationInWords(run.total_ms),
          `${run.adapter}/${run.target}`
        ])
      )

/** One run with everything that is known about it. */
export const runDetails = (run: RunView): string => {
  const facts: Array<readonly [string, string | undefined]> = [
    ["run", run.id],
    ["state", outcome(run)],
    ["target", `${run.adapter}/${run.target}`],
    ["node", run.node],
    ["caller", run.caller],
    ["session", run.session],
    ["submitted", run.submitted_at],
    ["waited", run.queue_ms === undefined ? undefined : durationInWords(run.queue_ms)],
    ["first output", run.first_event_ms === undefined ? undefined : durationInWords(run.first_event_ms)],
    ["total", durationInWords(run.total_ms)],
    ["tokens", tokensInWords(run.usage) || undefined],
    ["events", String(run.events)],
    ["finished", run.finish_reason],
    ["failure", run.failure === undefined ? undefined : `${run.failure.code}: ${run.failure.message}`],
    ["cancelled", run.cancel_reason],
    [
      "attempts",
      run.attempts
        .map(({ attempt, node, duration_ms, outcome: end }) =>
          [
            `${attempt}. ${node}`,
            ...(duration_ms === undefined ? [] : [durationInWords(duration_ms)]),
            ...(end === undefined ? [] : [end])
          ].join(" ")
        )
        .join("; ") || undefined
    ]
  ]
  const lines = facts.flatMap(([name, value]) =>
    value === undefined ? [] : [`${name.padEnd(13)} ${safeLine(value)}`]
  )
  return [...lines, ...(run.selection.length === 0 ? [] : ["", verdicts(run.selection)])].join("\n")
}

const verdicts = (selection: RunView["selection"]): string =>
  selection
    .map(({ alias, chosen, message }) => `${chosen ? "→" : " "} ${safeLine(`${alias}: ${message}`)}`)
    .join("\n")

/** Which node would get a run, and why not the others. */
export const explanationText = (explanation: ExplanationView): string => {
  const what = `${explanation.adapter}/${explanation.target}`
  const { otherwise } = explanation
  const answer =
    explanation.chosen !== undefined
      ? `${what} would run on ${explanation.chosen} now`
      : otherwise === undefined
        ? `${what} would not run now`
        : otherwise.waits
          ? `${what} would wait for a slot, ${counted(otherwise.ahead, "run")} before it`
          : `${what} would be refused: ${otherwise.code}: ${otherwise.message}`
  return [safeLine(answer), ...(explanation.nodes.length === 0 ? [] : [verdicts(explanation.nodes)])].join(
    "\n"
  )
}
