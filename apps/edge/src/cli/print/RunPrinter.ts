// A run's events as they are shown to a person: text as it comes, thinking dimmed, tool calls on lines of their own, and
// a dim last line with the node, the tokens and the time.
import type { RunEventView } from "../../admin/RunEventView.ts"
import type { UsageView } from "../../admin/RunView.ts"
import { durationInWords } from "./inWords.ts"
import { tokensInWords } from "./printRuns.ts"
import { safeLine, safeText } from "./safeText.ts"

export interface RunPrinterOptions {
  /** Whether escape sequences of our own may be used. */
  readonly colors: boolean
  /** Whether the reader is a terminal: text of nodes is made harmless, and the last line is shown. */
  readonly terminal: boolean
}

/** How many values of a vector are shown. */
const SHOWN_VALUES = 4

type Section = "none" | "text" | "reasoning" | "refusal" | "tool_call" | "output"

export class RunPrinter {
  readonly #options: RunPrinterOptions
  readonly #startedAt: number | undefined
  #section: Section = "none"
  #choice = 0
  #atLineStart = true
  #calls = new Set<string>()
  #node = ""
  #attempt = 1
  #usage: UsageView | undefined

  /** `startedAt`: when the run was submitted, by performance.now(); undefined when it was not submitted here. */
  constructor(options: RunPrinterOptions, startedAt: number | undefined) {
    this.#options = options
    this.#startedAt = startedAt
  }

  /** The event for stdout; empty when it shows nothing. */
  print(event: RunEventView): string {
    switch (event.type) {
      case "queued":
        return this.#note(`waits for a slot, ${event.ahead} before it`)
      case "dispatched":
        this.#node = event.node
        this.#attempt = event.attempt
        return event.attempt > 1 ? this.#note(`attempt ${event.attempt}, on ${safeLine(event.node)}`) : ""
      case "interrupted":
        return this.#note(
          `${safeLine(event.node)} lost: ${safeLine(event.reason)}; waits up to ${seconds(event.grace_ms)} for it`
        )
      case "resumed":
        return this.#note(`${safeLine(event.node)} is back`)
      case "started":
        return ""
      case "usage":
        this.#usage = event.usage
        return ""
      case "completed":
        this.#usage = event.usage ?? this.#usage
        return this.#end(
          event.finish_reason === "stop"
            ? ""
            : `ended by ${safeLine(event.raw_finish_reason ?? event.finish_reason)}`
        )
      case "cancelled":
        return this.#end(`cancelled: ${safeLine(event.reason)}`)
      case "failed":
        return this.#end(`failed: ${event.code}: ${safeLine(event.message)}`)
      case "delta":
        return this.#delta(event)
    }
  }

  /** What ends the line of an answer that has no end of its own. */
  finish(): string {
    return this.#freshLine()
  }

  #delta(event: Extract<RunEventView, { readonly type: "delta" }>): string {
    switch (event.kind) {
      case "text":
      case "refusal":
        return this.#open(event.kind, event.choice) + this.#raw(event.text)
      case "reasoning":
        return this.#open(event.kind, event.choice) + this.#dim(this.#raw(event.text))
      case "output":
        return (
          this.#open("output", event.choice) +
          (event.channel === "stderr" ? this.#dim(this.#raw(event.text)) : this.#raw(event.text))
        )
      case "embedding": {
        const shown = event.values.slice(0, SHOWN_VALUES).map((value) => value.toPrecision(4))
        const more = event.values.length > SHOWN_VALUES ? ", …" : ""
        return (
          this.#open("none", event.choice) +
          this.#line(`[${event.index}] ${event.values.length} values: ${shown.join(", ")}${more}`)
        )
      }
      case "tool_call": {
        const key = `${event.choice}/${event.index}`
        if (this.#calls.has(key) && this.#section === "tool_call") return this.#raw(event.arguments)
        this.#calls.add(key)
        const opened = this.#freshLine()
        this.#section = "tool_call"
        return opened + this.#raw(`→ ${safeLine(event.name ?? `call ${event.index}`)} ${event.arguments}`)
      }
    }
  }

  /** Begins a part of the answer on a line of its own. */
  #open(section: Section, choice: number): string {
    if (section === this.#section && choice === this.#choice && section !== "none") return ""
    const line = this.#section === "none" ? "" : this.#freshLine()
    this.#section = section
    const choiceChanged = choice !== this.#choice
    this.#choice = choice
    return choiceChanged ? `${line}${this.#dim(`[choice ${choice}]`)}\n` : line
  }

  #raw(text: string): string {
    const shown = this.#options.terminal ? safeText(text) : text
    if (shown !== "") this.#atLineStart = shown.endsWith("\n")
    return shown
  }

  #line(text: string): string {
    const line = this.#freshLine()
    return `${line}${text}\n`
  }

  #freshLine(): string {
    if (this.#atLineStart) return ""
    this.#atLineStart = true
    return "\n"
  }

  #note(text: string): string {
    return this.#options.terminal ? `${this.#freshLine()}${this.#dim(`[${text}]`)}\n` : ""
  }

  #end(how: string): string {
    const line = this.#freshLine()
    if (!this.#options.terminal) return line
    const parts = [
      ...(this.#node === "" ? [] : [safeLine(this.#node)]),
      ...(this.#attempt > 1 ? [`attempt ${this.#attempt}`] : []),
      ...(tokensInWords(this.#usage) === "" ? [] : [`${tokensInWords(this.#usage)} tokens`]),
      ...(this.#startedAt === undefined ? [] : [durationInWords(performance.now() - this.#startedAt)]),
      ...(how === "" ? [] : [how])
    ]
    return `${line}${parts.length === 0 ? "" : `${this.#dim(`[${parts.join(", ")}]`)}\n`}`
  }

  #dim(text: string): string {
    return this.#options.colors && text !== "" ? `\u001b[2m${text}\u001b[22m` : text
  }
}

/** Whether our own escape sequences may be written to stdout. */
export const stdoutOptions = (): RunPrinterOptions => {
  const terminal = process.stdout.isTTY === true
  return {
    terminal,
    colors: terminal && (process.env.NO_COLOR ?? "") === "" && process.env.TERM !== "dumb"
  }
}

const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`
