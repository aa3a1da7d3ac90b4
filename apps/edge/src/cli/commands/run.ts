// `edge run ADAPTER TARGET [PROMPT]`: one run at a running edge, its output on stdout. Interrupting the command leaves
// the run, by which the edge cancels it.
import { Effect, Option, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { RunEventView } from "../../admin/RunEventView.ts"
import { CommandFailed, ExitCode, failedBy, usageError } from "../CommandFailed.ts"
import { connectFlags, connectTo } from "../connectFlags.ts"
import { write } from "../output.ts"
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
      Argument.withDescription("what to say; without it, stdin is read"),
      Argument.optional
    ),
    ...needFlags,
    timeout: Flag.String("timeout").pipe(
      Flag.withMetavar("DURATION"),
      Flag.withDescription("total time, such as 30s or 5m"),
      Flag.optional
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
    if (Option.isNone(flags.prompt) && process.stdin.isTTY === true) {
      return yield* usageError("no prompt: give one as the last argument, or pipe one into stdin")
    }
    const client = yield* connectTo(flags.connect, flags.keyFile)
    const prompt = Option.isSome(flags.prompt) ? flags.prompt.value : yield* Effect.promise(readStdin)
    const { RunPrinter, stdoutOptions } = yield* Effect.promise(() => import("../print/RunPrinter.ts"))
    const printer = new RunPrinter(stdoutOptions(), performance.now())
    const run = yield* Effect.mapError(
      client.submit({
        ...needOf(flags),
        messages: [{ role: "user", content: prompt }],
        ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs })
      }),
      failedBy
    )
    let last: RunEventView | undefined
    yield* Stream.runForEach(run.events, (event) => {
      last = event
      return Effect.promise(() => write(flags.json ? `${JSON.stringify(event)}\n` : printer.print(event)))
    }).pipe(Effect.mapError(failedBy))
    if (last?.type === "failed") {
      return yield* new CommandFailed({
        message: `run ${run.id} failed: ${last.code}: ${last.message}`,
        exitCode: ExitCode.runFailed
      })
    }
    if (last?.type === "cancelled") {
      return yield* new CommandFailed({
        message: `run ${run.id} was cancelled: ${last.reason}`,
        exitCode: ExitCode.runFailed
      })
    }
  })
).pipe(Command.withDescription("Run something at a running edge and print its output"))
