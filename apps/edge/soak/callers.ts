// The callers of a soak: each submits a run, treats it as people treat runs, and writes into the ledger what it saw.
// An answer is a function of the run's id, so that everything lost, doubled or swapped shows in it.
import { type ApiEvent, ApiRefusal, type ApiStream, type Submission } from "../e2e/harness/AdminClient.ts"
import { countPrompt, countText } from "../e2e/harness/countText.ts"
import type { EdgeProcess } from "../e2e/harness/EdgeProcess.ts"
import type { Random } from "../e2e/harness/Random.ts"
import { RawHttp } from "../e2e/harness/RawHttp.ts"
import { SseParser } from "../e2e/harness/SseParser.ts"
import { within } from "../e2e/harness/waiting.ts"
import type { Ledger } from "./Ledger.ts"

/** A consumer that takes nothing for this long is cut off. */
export const CONSUMER_TIMEOUT_MS = 5_000

/** How long a run may take to be final after its caller has left, and to end in all, in milliseconds. */
const FINAL_MS = 30_000
const WHOLE_MS = 60_000

interface Call {
  readonly edge: EdgeProcess
  readonly ledger: Ledger
  readonly random: Random
}

const ends = new Set(["completed", "failed", "cancelled"])
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** One run from its submission to what is left of it in the edge's records. */
export const call = async (given: Call): Promise<void> => {
  const { ledger, random } = given
  const kind = random.pick(drawn)
  try {
    await kinds.get(kind)?.(given)
  } catch (error) {
    if (error instanceof ApiRefusal && error.problem.code !== "") {
      ledger.refused(error.problem.code)
      // As it was asked to, in short.
      await wait(50 + random.below(100))
    } else ledger.finding(`${kind}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

type Kind = (given: Call) => Promise<void>

const counted = (random: Random, tokens: number, more: Partial<Submission> = {}): Submission => ({
  adapter: "mock",
  target: "count",
  prompt: countPrompt(tokens, { interval_ms: random.below(4) * random.below(4), delay_ms: random.below(30) }),
  ...more
})

const begin = async ({ edge, ledger }: Call, submission: Submission): Promise<ApiStream> => {
  const stream = await edge.admin.stream(submission)
  ledger.accept(stream.runId)
  return stream
}

const kinds: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  [
    "read",
    async (given) => {
      const tokens = 1 + given.random.below(400)
      const stream = await begin(given, counted(given.random, tokens))
      await finish(given, stream, tokens)
    }
  ],
  [
    "read a whole answer",
    async (given) => {
      const tokens = 1 + given.random.below(200)
      const stream = await begin(given, counted(given.random, tokens, { stream: false }))
      await finish(given, stream, tokens)
    }
  ],
  [
    "cancel",
    async (given) => {
      const tokens = 400
      const stream = await begin(given, counted(given.random, tokens))
      await Promise.race([stream.over, wait(given.random.below(800))])
      await given.edge.admin.cancel(stream.runId)
      await finish(given, stream, tokens)
    }
  ],
  [
    "hang up",
    async (given) => {
      const stream = await begin(given, counted(given.random, 400))
      await Promise.race([stream.over, wait(given.random.below(800))])
      stream.leave()
      await stream.over
      check(given, stream.runId, stream.events, 400)
      await final(given, stream.runId)
    }
  ],
  [
    "detached, read later",
    async (given) => {
      const tokens = 1 + given.random.below(300)
      const { id } = await given.edge.admin.submit(counted(given.random, tokens, { detached: true }))
      given.ledger.accept(id)
      await wait(given.random.below(1_000))
      await finish(given, await given.edge.admin.watch(id), tokens, id)
    }
  ],
  [
    "fail",
    async (given) => {
      const target = given.random.pick(["fail-first", "fail-mid"])
      const stream = await begin(given, { adapter: "flaky", target, prompt: "x" })
      const whole = await within("the end of a run", stream.over, WHOLE_MS)
      if (stream.terminals.length !== 1) {
        given.ledger.finding(
          `run ${stream.runId} of ${target} ended ${stream.terminals.length} times for its reader (${stream.cutBy ?? whole}), who saw ${JSON.stringify(stream.events)} ${stream.errors}`
        )
      }
      await final(given, stream.runId)
    }
  ],
  ["read slowly", (given) => readSlowly(given, 2_000 + given.random.below(4_000), 300)],
  ["stop reading", (given) => readSlowly(given, 60_000, 10_000)]
])

/** Readers of much text are few: they would do nothing but fill the machine. */
const drawn = [...kinds.keys()].flatMap((kind) =>
  kind.endsWith("stop reading") ? [kind] : Array<string>(6).fill(kind)
)

/** Reads to the end and compares with the record. */
const finish = async (
  given: Call,
  stream: ApiStream,
  tokens: number,
  runId = stream.runId
): Promise<void> => {
  const over = await within(`the end of run ${runId}`, stream.over, WHOLE_MS)
  if (!over) given.ledger.finding(`the stream of run ${runId} was cut: ${stream.cutBy}`)
  check(given, runId, stream.events, tokens)
  const [end, ...more] = stream.terminals
  if (end === undefined || more.length > 0) {
    const said = stream.errors.join()
    // A reader who was too slow is told so instead of an end.
    if (more.length > 0 || !said.includes("slow_consumer")) {
      given.ledger.finding(`run ${runId} ended ${stream.terminals.length} times for its reader: ${said}`)
    }
  }
  const record = await final(given, runId)
  if (end !== undefined && record !== undefined && end.type !== record.phase) {
    given.ledger.finding(`run ${runId}: the stream says ${end.type}, the record ${record.phase}`)
  }
}

/** A reader by hand who takes what is there, pauses, and goes on. */
const readSlowly = async (given: Call, tokens: number, pauseMs: number): Promise<void> => {
  const { edge, ledger, random } = given
  await using cleanup = new AsyncDisposableStack()
  const http = await RawHttp.open(cleanup, edge.http)
  http.request("POST", "/admin/v1/runs?events=true", {
    adapter: "mock",
    target: "count",
    prompt: countPrompt(tokens)
  })
  const head = await http.head(WHOLE_MS)
  if (head.status !== 200) {
    const body = JSON.parse(await http.body(head, WHOLE_MS)) as { error: { code: string } }
    ledger.refused(body.error.code)
    return
  }
  const runId = head.headers["x-iop-run-id"] ?? ""
  ledger.accept(runId)
  const parser = new SseParser()
  let pauses = 2
  let longestMs = 0
  let whole = false
  let failed = ""
  try {
    while (true) {
      const chunk = await http.chunk(WHOLE_MS)
      if (chunk === undefined) {
        whole = true
        break
      }
      parser.push(chunk)
      if (pauses > 0 && random.below(8) === 0) {
        pauses -= 1
        http.socket.pause()
        const ms = random.below(pauseMs)
        longestMs = Math.max(longestMs, ms)
        await wait(ms)
        http.socket.resume()
      }
    }
  } catch (error) {
    // Cut off for having taken nothing, or so it should be.
    failed = error instanceof Error ? error.message : String(error)
  }
  const events = parser.events
    .filter(({ name }) => name === "message")
    .map(({ data }) => JSON.parse(data) as ApiEvent)
  check(given, runId, events, tokens)
  const record = await final(given, runId)
  const seen = events.filter(({ type }) => ends.has(type))
  const tooSlow = parser.events.some(({ data, name }) => name === "error" && data.includes("slow_consumer"))
  // Who took nothing for too long is cut off, whatever became of the run itself.
  const cutOff = tooSlow || (!whole && longestMs > CONSUMER_TIMEOUT_MS / 2)
  if (seen.length > 1 || (seen.length === 0 && !cutOff)) {
    const outcome = record?.failure?.code ?? record?.phase
    ledger.finding(
      `run ${runId}: ${seen.length} ends for a slow reader, the record says ${outcome} (${failed}; ${events.length} events read, paused for ${longestMs} ms)`
    )
  }
}

/** What was read must be events in order from one attempt, and their text a prefix of the answer, whole at its end. */
const check = ({ ledger }: Call, runId: string, events: ReadonlyArray<ApiEvent>, tokens: number): void => {
  ledger.events += events.length
  let seq = 0
  let begun = false
  for (const event of events) {
    if (event.seq !== seq + 1) ledger.finding(`run ${runId}: event ${event.seq} follows ${seq}`)
    seq = event.seq
    if (event.type === "delta") begun = true
    if (event.type === "dispatched" && begun)
      ledger.finding(`run ${runId} was run again after its first delta`)
  }
  const text = events.map((event) => event.text ?? "").join("")
  const whole = countText(runId, tokens)
  const last = events.at(-1)
  if (!whole.startsWith(text)) {
    let at = 0
    while (text[at] === whole[at]) at += 1
    ledger.finding(
      `run ${runId}: its text differs at ${at}: ${JSON.stringify(text.slice(at, at + 40))} is not ${JSON.stringify(whole.slice(at, at + 40))}`
    )
  } else if (last?.type === "completed" && text.length !== whole.length) {
    ledger.finding(`run ${runId} completed with ${text.length} of ${whole.length} characters`)
  }
}

/** The run's record once it is final; counts how it ended. */
const final = async ({ edge, ledger }: Call, runId: string) => {
  try {
    const record = await edge.admin.untilRun(runId, [...ends], FINAL_MS)
    ledger.ended(runId, record.failure?.code ?? record.phase)
    return record
  } catch (error) {
    ledger.finding(`run ${runId} did not end: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}
