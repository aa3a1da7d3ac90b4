// The console without a terminal and without an edge of another process: streams in, text out.
import { PassThrough } from "node:stream"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger } from "effect"
import { cancelled, completed, type FakeLink, join, record, started, text } from "../../../test/fakeNodes.ts"
import { fixture, turn } from "../../../test/runFixture.ts"
import { makeLocalClient } from "../../admin/localClient.ts"
import { NodeRegistry } from "../../node/NodeRegistry.ts"
import { Timers } from "../../node/Timers.ts"
import { RunService } from "../../run/RunService.ts"
import { type Signal, Signals } from "../Signals.ts"
import { ConsoleSession } from "./ConsoleSession.ts"
import { pipeConsole } from "./pipeConsole.ts"
import { terminalConsole } from "./terminalConsole.ts"

/** Runs on one fake node, without log lines. */
const quiet = (records: Parameters<typeof fixture>[0]) =>
  fixture(records).pipe(Layer.provideMerge(Logger.layer([])))

/** Signals that the test sends. */
class TestSignals extends Signals {
  #latest: (signal: Signal) => void = () => {}
  override handle(handler: (signal: Signal) => void): void {
    this.#latest = handler
  }
  send(signal: Signal): void {
    this.#latest(signal)
  }
}

const setup = Effect.fnUntraced(function* (
  options: { readonly json?: boolean; readonly terminal?: boolean } = {}
) {
  const registry = yield* NodeRegistry
  const edge = { registry, runs: yield* RunService, timers: yield* Timers }
  const link = join(registry, "a")
  let out = ""
  let notes = ""
  const session = new ConsoleSession(
    makeLocalClient(edge, "console"),
    {
      printer: { terminal: options.terminal === true, colors: false },
      json: options.json === true,
      out: async (piece) => {
        out += piece
      },
      note: async (piece) => {
        notes += piece
      }
    },
    undefined
  )
  const eventually = Effect.fnUntraced(function* (what: string, so: () => boolean) {
    for (let turns = 0; turns < 10_000; turns++) {
      if (so()) return
      yield* turn
    }
    throw new Error(`never came: ${what}; out ${JSON.stringify(out)}, notes ${JSON.stringify(notes)}`)
  })
  /** The link gets its run of that number, and says the events. */
  const answer = (
    run: number,
    ...events: Parameters<FakeLink["say"]> extends [unknown, ...infer E] ? E : never
  ) =>
    Effect.gen(function* () {
      yield* eventually(`run ${run}`, () => link.sent.length >= run)
      const sent = link.sent[run - 1]
      if (sent === undefined) throw new Error(`no run ${run}`)
      link.say(sent, ...events)
    })
  return {
    link,
    session,
    eventually,
    answer,
    input: new PassThrough(),
    signals: new TestSignals(() => {}),
    out: () => out,
    notes: () => notes
  }
})

describe("a console at a pipe", () => {
  it.live("runs line by line, one after the other", () =>
    Effect.gen(function* () {
      const { session, input, signals, answer, link, out } = yield* setup()
      const console = yield* Effect.forkChild(pipeConsole(session, input, signals), {
        startImmediately: true
      })
      input.end("first\n\nsecond\n")
      yield* answer(1, started, text("one"))
      yield* turn
      assert.strictEqual(link.sent.length, 1)
      yield* answer(1, completed)
      yield* answer(2, started, text("two"), completed)
      assert.strictEqual(yield* Fiber.join(console), "finished")
      assert.strictEqual(out(), "one\ntwo\n")
      assert.strictEqual(session.failed, 0)
    }).pipe(Effect.provide(quiet([record("a")])))
  )

  it.live("stays where it is when /use names what no node has", () =>
    Effect.gen(function* () {
      const { session, input, signals, answer, link, notes } = yield* setup()
      const console = yield* Effect.forkChild(pipeConsole(session, input, signals), {
        startImmediately: true
      })
      input.end("first\n/use mock other\nsecond\n")
      yield* answer(1, started, completed)
      yield* answer(2, started, completed)
      yield* Fiber.join(console)
      assert.strictEqual(link.sent.length, 2)
      assert.match(notes(), /other/)
      assert.strictEqual(session.where, "mock/echo")
      assert.strictEqual(session.failed, 0)
    }).pipe(Effect.provide(quiet([record("a")])))
  )

  it.live("prints events as JSON, one object per line, and nothing else", () =>
    Effect.gen(function* () {
      const { session, input, signals, answer, out, notes } = yield* setup({ json: true })
      const console = yield* Effect.forkChild(pipeConsole(session, input, signals), {
        startImmediately: true
      })
      input.end("hello\n/nodes\n/use mock nope\n")
      yield* answer(1, started, text("hi\n"), completed)
      yield* Fiber.join(console)
      const lines = out()
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.deepStrictEqual(
        lines.map(({ type }) => type),
        ["dispatched", "started", "delta", "completed", "nodes"]
      )
      assert.strictEqual(lines[2].text, "hi\n")
      assert.match(notes(), /nope/)
    }).pipe(Effect.provide(quiet([record("a", { targets: ["echo"] })])))
  )

  it.live("says that a run failed to whoever does not read the answer", () =>
    Effect.gen(function* () {
      const { session, input, signals, answer, out, notes } = yield* setup()
      const console = yield* Effect.forkChild(pipeConsole(session, input, signals), {
        startImmediately: true
      })
      input.end("hello\n")
      yield* answer(1, started, text("half"), {
        type: "failed",
        code: "adapter_error",
        message: "backend\u001b[2J gone",
        retryable: false
      })
      yield* Fiber.join(console)
      assert.strictEqual(out(), "half\n")
      assert.match(notes(), /^run failed: adapter_error: .*backend␛\[2J gone\n$/)
      assert.strictEqual(session.failed, 1)
    }).pipe(Effect.provide(quiet([record("a")])))
  )

  it.live("cancels its run when interrupted, waits for its end and reads no further", () =>
    Effect.gen(function* () {
      const { session, input, signals, answer, eventually, link } = yield* setup()
      const console = yield* Effect.forkChild(pipeConsole(session, input, signals), {
        startImmediately: true
      })
      input.write("first\nsecond\n")
      yield* answer(1, started)
      yield* eventually("the run's id", () => session.runId !== undefined)
      signals.send("SIGINT")
      yield* eventually("a cancel", () => link.cancels.length === 1)
      yield* answer(1, cancelled)
      assert.strictEqual(yield* Fiber.join(console), "interrupted")
      assert.strictEqual(link.sent.length, 1)
    }).pipe(Effect.provide(quiet([record("a")])))
  )
})

describe("a console at a terminal", () => {
  /** Types into the console and sees what it shows. */
  const terminal = Effect.fnUntraced(function* () {
    const made = yield* setup({ terminal: true })
    const screen = new PassThrough()
    let shown = ""
    screen.on("data", (chunk: Buffer) => {
      shown += chunk.toString("utf8")
    })
    const fiber = yield* Effect.forkChild(
      Effect.scoped(terminalConsole(made.session, { input: made.input, output: screen }, made.signals)),
      { startImmediately: true }
    )
    const ctrlC = () => made.input.write("\u0003")
    const type = (keys: string) => made.input.write(keys)
    const sees = (what: string) =>
      made.eventually(what, () => (shown + made.out() + made.notes()).includes(what))
    yield* sees("mock/echo> ")
    return { ...made, fiber, ctrlC, type, sees, shown: () => shown }
  })

  it.live("shows where prompts go, runs them, and prompts again", () =>
    Effect.gen(function* () {
      const { type, sees, answer, fiber, out } = yield* terminal()
      type("hello\r")
      yield* answer(1, started, text("hi"), completed)
      yield* sees("[a, ")
      assert.match(out(), /^hi\n\[a, /)
      type("/quit\r")
      assert.strictEqual(yield* Fiber.join(fiber), "finished")
    }).pipe(Effect.provide(quiet([record("a")])))
  )

  it.live("completes commands, adapters and targets", () =>
    Effect.gen(function* () {
      const { type, sees, fiber } = yield* terminal()
      type("/us\t")
      yield* sees("/use ")
      type("m\t")
      yield* sees("mock ")
      type("e\t")
      yield* sees("echo ")
      type("\r/quit\r")
      assert.strictEqual(yield* Fiber.join(fiber), "finished")
    }).pipe(Effect.provide(quiet([record("a")])))
  )

  it.live("answers commands while a run goes on, and keeps prompts for after it", () =>
    Effect.gen(function* () {
      const { type, sees, answer, fiber, link, notes } = yield* terminal()
      type("first\r")
      yield* answer(1, started)
      type("second\r/runs\r")
      yield* sees("mock/echo")
      yield* sees("RUN")
      assert.strictEqual(link.sent.length, 1)
      yield* answer(1, completed)
      yield* answer(2, started, completed)
      assert.strictEqual(notes(), "")
      type("/quit\r")
      assert.strictEqual(yield* Fiber.join(fiber), "finished")
    }).pipe(Effect.provide(quiet([record("a")])))
  )

  it.live("cancels the run at the first Ctrl-C and goes on, and leaves at the second", () =>
    Effect.gen(function* () {
      const { type, ctrlC, answer, sees, eventually, fiber, session, link } = yield* terminal()
      type("first\r")
      yield* answer(1, started)
      yield* eventually("the run's id", () => session.runId !== undefined)
      ctrlC()
      yield* eventually("a cancel", () => link.cancels.length === 1)
      yield* answer(1, cancelled)
      yield* sees("cancelled: by you")
      type("second\r")
      yield* answer(2, started)
      yield* eventually("the run's id", () => session.runId !== undefined)
      ctrlC()
      yield* eventually("a cancel", () => link.cancels.length === 2)
      ctrlC()
      assert.strictEqual(yield* Fiber.join(fiber), "interrupted")
    }).pipe(Effect.provide(quiet([record("a")])))
  )

  it.live("with nothing running clears the line first, then asks once more, then leaves", () =>
    Effect.gen(function* () {
      const { type, ctrlC, sees, fiber, link } = yield* terminal()
      type("half a thou")
      yield* sees("half a thou")
      ctrlC()
      yield* turn
      ctrlC()
      yield* sees("(once more, or /quit, leaves)")
      ctrlC()
      assert.strictEqual(yield* Fiber.join(fiber), "interrupted")
      assert.strictEqual(link.sent.length, 0)
    }).pipe(Effect.provide(quiet([record("a")])))
  )

  it.live("ends quietly, and leaves its run, when the terminal goes away", () =>
    Effect.gen(function* () {
      const { type, answer, signals, eventually, fiber, link } = yield* terminal()
      type("first\r")
      yield* answer(1, started)
      signals.send("SIGHUP")
      assert.strictEqual(yield* Fiber.join(fiber), "finished")
      yield* eventually("a cancel", () => link.cancels.length === 1)
    }).pipe(Effect.provide(quiet([record("a")])))
  )
})
