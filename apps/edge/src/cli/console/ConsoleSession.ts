// What the console does with what is typed, whether a person types it or a pipe: it knows the present adapter and
// target, runs prompts and answers commands. It writes and never reads.
import { Effect, Stream } from "effect"
import type { EdgeClient, EdgeProblem } from "../../admin/EdgeClient.ts"
import type { RunEventView } from "../../admin/RunEventView.ts"
import { nodesTable } from "../print/printNodes.ts"
import { explanationText, runsTable } from "../print/printRuns.ts"
import { RunPrinter, type RunPrinterOptions } from "../print/RunPrinter.ts"
import { safeLine } from "../print/safeText.ts"
import { firstTarget } from "./completeLine.ts"
import { type ConsoleLine, helpText } from "./consoleCommands.ts"

export interface ConsoleOutput {
  readonly printer: RunPrinterOptions
  /** Events and answers as JSON, one object per line. */
  readonly json: boolean
  /** Waits while the reader does not read. */
  readonly out: (text: string) => Promise<void>
  /** For a person; never part of the answers. */
  readonly note: (text: string) => Promise<void>
}

/** Runs that `/runs` shows. */
const SHOWN_RUNS = 10

export class ConsoleSession {
  readonly client: EdgeClient
  readonly #output: ConsoleOutput
  #where: { readonly adapter: string; readonly target: string } | undefined
  #run: string | undefined
  /** The present run was cancelled from here. */
  #cancelled = false
  #failed = 0

  constructor(
    client: EdgeClient,
    output: ConsoleOutput,
    where: { readonly adapter: string; readonly target: string } | undefined
  ) {
    this.client = client
    this.#output = output
    this.#where = where
  }

  /** The run that goes on, once it has an id. */
  get runId(): string | undefined {
    return this.#run
  }

  /** Prompts that did not end well. */
  get failed(): number {
    return this.#failed
  }

  /** `mock/echo`; empty when nothing is chosen. */
  get where(): string {
    return this.#where === undefined ? "" : safeLine(`${this.#where.adapter}/${this.#where.target}`)
  }

  /** Chooses the first target that a node offers, if nothing is chosen yet. */
  readonly chooseFirst: Effect.Effect<void, EdgeProblem> = Effect.suspend(() =>
    this.#where !== undefined
      ? Effect.void
      : Effect.map(this.client.nodes, (nodes) => {
          this.#where = firstTarget(nodes)
        })
  )

  /** Everything but a prompt. Problems are told, not thrown: the session goes on. */
  command(line: Exclude<ConsoleLine, { readonly type: "prompt" | "quit" | "nothing" }>): Effect.Effect<void> {
    return Effect.catch(this.#command(line), (problem) => this.#say(problem.message))
  }

  #command(
    line: Exclude<ConsoleLine, { readonly type: "prompt" | "quit" | "nothing" }>
  ): Effect.Effect<void, EdgeProblem> {
    switch (line.type) {
      case "mistake":
        return this.#say(line.message)
      case "help":
        return this.#say(helpText())
      case "nodes":
        return Effect.flatMap(this.client.nodes, (nodes) =>
          this.#answer({ type: "nodes", nodes }, () => nodesTable(nodes))
        )
      case "runs":
        return Effect.flatMap(this.client.runs({ limit: SHOWN_RUNS }), (runs) =>
          this.#answer({ type: "runs", runs }, () => runsTable(runs))
        )
      case "use":
        return this.#use(line.adapter, line.target)
      case "explain": {
        const adapter = line.adapter ?? this.#where?.adapter
        const target = line.target ?? this.#where?.target
        if (adapter === undefined || target === undefined)
          return this.#say("say what: /explain ADAPTER TARGET")
        return Effect.flatMap(this.client.explain({ adapter, target }), (explanation) =>
          this.#answer({ type: "explanation", ...explanation }, () => explanationText(explanation))
        )
      }
      case "cancel": {
        const id = line.run ?? this.#run
        if (id === undefined) return this.#say("nothing runs; /cancel RUN cancels another one")
        if (id === this.#run) this.#cancelled = true
        return Effect.flatMap(this.client.cancel(id, "from a console"), (run) =>
          line.run === undefined ? Effect.void : this.#say(`${run.id} is ${run.phase}`)
        )
      }
    }
  }

  #use(adapter: string, target: string): Effect.Effect<void, EdgeProblem> {
    return Effect.flatMap(this.client.explain({ adapter, target }), ({ chosen, otherwise }) => {
      const refused = chosen === undefined && otherwise?.waits === false ? otherwise : undefined
      // What there is but cannot run now is chosen all the same: its node may come back.
      if (refused?.code !== "target_not_found") this.#where = { adapter, target }
      return refused === undefined ? Effect.void : this.#say(refused.message)
    })
  }

  /** Runs a prompt to its end and prints its events. Interrupting it leaves the run, which cancels it. */
  prompt(text: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#where === undefined) {
        this.#failed += 1
        return this.#say("no node offers anything yet; /nodes shows them, /use ADAPTER TARGET chooses")
      }
      const printer = new RunPrinter(this.#output.printer, performance.now())
      const submission = { ...this.#where, messages: [{ role: "user", content: text }] as const }
      let last: RunEventView | undefined
      return this.client.submit(submission).pipe(
        Effect.flatMap((run) => {
          this.#run = run.id
          this.#cancelled = false
          return Stream.runForEach(run.events, (event) => {
            last = event
            return Effect.promise(() =>
              this.#output.out(
                this.#output.json
                  ? `${JSON.stringify({ run: run.id, ...event })}\n`
                  : printer.print(this.#forPerson(event))
              )
            )
          })
        }),
        Effect.onError(() =>
          Effect.sync(() => {
            if (!this.#output.json) void this.#output.out(printer.finish())
          })
        ),
        Effect.andThen(Effect.suspend(() => this.#ended(last))),
        Effect.catch((problem) => this.#refused(problem)),
        Effect.ensuring(
          Effect.sync(() => {
            this.#run = undefined
          })
        )
      )
    })
  }

  /** A person knows who pressed the keys. */
  #forPerson(event: RunEventView): RunEventView {
    return event.type === "cancelled" && this.#cancelled ? { ...event, reason: "by you" } : event
  }

  #ended(last: RunEventView | undefined): Effect.Effect<void> {
    if (last?.type === "completed") return Effect.void
    this.#failed += 1
    if (this.#output.json || this.#output.printer.terminal || last === undefined) return Effect.void
    // The answer goes to whoever reads stdout; that it is not whole must be seen all the same.
    if (last.type === "failed") return this.#note(`run failed: ${last.code}: ${last.message}`)
    return last.type === "cancelled"
      ? this.#note(`run cancelled: ${this.#cancelled ? "by you" : last.reason}`)
      : Effect.void
  }

  #refused(problem: EdgeProblem): Effect.Effect<void> {
    this.#failed += 1
    const { code, message } = problem
    return this.#output.json
      ? Effect.promise(() => this.#output.out(`${JSON.stringify({ type: "refused", code, message })}\n`))
      : this.#note(`${code}: ${message}`)
  }

  #answer(json: object, text: () => string): Effect.Effect<void> {
    return Effect.promise(() =>
      this.#output.out(this.#output.json ? `${JSON.stringify(json)}\n` : `${text()}\n`)
    )
  }

  #say(message: string): Effect.Effect<void> {
    return this.#note(message)
  }

  #note(message: string): Effect.Effect<void> {
    return Effect.promise(() => this.#output.note(`${message.split("\n").map(safeLine).join("\n")}\n`))
  }
}
