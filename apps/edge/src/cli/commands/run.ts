// `edge run ADAPTER TARGET [PROMPT …]`: one run at a running edge, its output on stdout. Interrupting the command leaves
// the run, by which the edge cancels it, unless the run was asked to be detached.
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { failedBy, usageError } from "../CommandFailed.ts"
import { connectFlags, connectTo } from "../connectFlags.ts"
import { stdoutClosed, writeJson, writeLine } from "../output.ts"
import { needArguments, needFlags, needOf } from "../runFlags.ts"

const durations = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const

/** `30s`, `5m`: as in the configuration file. */
const parseDuration = (text: string): number | undefined => {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text)
  const ms = match === null ? 0 : Math.round(Number(match[1]) * durations[match[2] as keyof typeof durations])
  return ms >= 1 && ms < 2 ** 31 ? ms : undefined
}

/** Prompts are text; more than this is a mistake. The edge has its own limit. */
const MAX_STDIN = 64 * 1024 * 1024

const readStdin = async (): Promise<string> => {
  const chunks: Array<Buffer> = []
  let size = 0
  for await (const chunk of process.stdin) {
    chunks.push(chunk)
    size += chunk.length
    if (size > MAX_STDIN) break
  }
  return Buffer.concat(chunks).toString("utf8")
}

export const runCommand = Command.make(
  "run",
  {
    ...needArguments,
    prompt: Argument.String("prompt").pipe(
      Argument.withDescription("what to say, one word or many; without it, stdin is read"),
      Argument.variadic()
    ),
    ...needFlags,
    timeout: Flag.String("timeout").pipe(
      Flag.withMetavar("DURATION"),
      Flag.withDescription("total time, such as 30s or 5m"),
      Flag.optional
    ),
    detach: Flag.Boolean("detach").pipe(
      Flag.withDescription("print the run's id and leave it; edge events ID shows what becomes of it"),
      Flag.withDefault(false)
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("print events, one JSON object per line"),
      Flag.withDefault(false)
    ),
    ...connectFlags
  },
  Effect.fnUntraced(function* (flags) {
    const timeoutMs = Option.isSome(flags.timeout) ? parseDuration(flags.timeout.value) : undefined
    if (Option.isSome(flags.timeout) && timeoutMs === undefined) {
      return yield* usageError("--timeout: expected a duration with its unit, such as 30s, 5m or 1h")
    }
    if (flags.prompt.length === 0 && process.stdin.isTTY === true) {
      return yield* usageError("no prompt: give one as the last argument, or pipe one into stdin")
    }
    const client = yield* connectTo(flags.connect, flags.keyFile)
    const prompt = flags.prompt.length > 0 ? flags.prompt.join(" ") : yield* Effect.promise(readStdin)
    const submission = {
      ...needOf(flags),
      messages: [{ role: "user", content: prompt }] as const,
      ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs })
    }
    if (flags.detach) {
      const run = yield* Effect.mapError(client.submitDetached(submission), failedBy)
      return yield* Effect.promise(() => (flags.json ? writeJson(run) : writeLine(run.id)))
    }
    const { printRun } = yield* Effect.promise(() => import("../print/printRun.ts"))
    const startedAt = performance.now()
    const run = yield* Effect.mapError(client.submit(submission), failedBy)
    yield* printRun(run, flags.json, startedAt).pipe(
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          // Who left a pipe wants to hear nothing.
          if (!stdoutClosed()) process.stderr.write(`edge: run ${run.id} was cancelled: you interrupted it\n`)
        })
      )
    )
  })
).pipe(Command.withDescription("Run something at a running edge and print its output"))
