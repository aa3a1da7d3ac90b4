import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import { Data, Duration, Effect, Redacted, Schema } from "effect"
import { type LoggingOptions, loggingLayer } from "./Logging.ts"
import { MAX_WAITING_BYTES } from "./LogSink.ts"
import { MAX_FIELD_CHARS } from "./logEntry.ts"

/** A stream that keeps what is written. */
class Recorder {
  readonly written: Array<string> = []
  writableLength = 0
  destroyed = false
  failing = false
  isTTY: boolean
  constructor(isTTY = false) {
    this.isTTY = isTTY
  }
  write(text: string): boolean {
    if (this.failing) throw new Error("ENOSPC: no space left on device")
    this.written.push(text)
    return true
  }
  on(): this {
    return this
  }
  get lines(): ReadonlyArray<string> {
    return this.written.join("").split("\n").slice(0, -1)
  }
}

const record = (
  effect: Effect.Effect<unknown>,
  options: Partial<LoggingOptions> = {},
  stream = new Recorder()
): ReadonlyArray<string> => {
  Effect.runSync(Effect.provide(effect, loggingLayer({ level: "debug", format: "json", stream, ...options })))
  return stream.lines
}

const json = (lines: ReadonlyArray<string>): ReadonlyArray<Record<string, unknown>> =>
  lines.map((line) => JSON.parse(line) as Record<string, unknown>)

const evil = `first\nsecond\r\u001b[2J"quote" \u2028${"x".repeat(1024 * 1024)}`

class Refused extends Data.TaggedError("Refused")<{ readonly why: string }> {
  override get message() {
    return this.why
  }
}

describe("loggingLayer", () => {
  it("writes time, level, message and fields of one entry as one JSON object", () => {
    const logged = Effect.logInfo("node joined", {
      node: "tower",
      slots: 4,
      tls: true,
      none: undefined,
      nil: null
    }).pipe(Effect.annotateLogs({ link: 7 }))
    const [entry, ...rest] = json(record(logged))
    assert.strictEqual(rest.length, 0)
    const { time, ...others } = entry ?? {}
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepStrictEqual(others, {
      level: "info",
      message: "node joined",
      node: "tower",
      slots: 4,
      tls: true,
      nil: null,
      link: 7
    })
  })

  it("writes the same entry for a person in one line", () => {
    const logged = Effect.logWarning("node lost", { node: "tower", reason: "no answer for 15 s", empty: "" })
    const [line, ...rest] = record(logged, { format: "pretty" })
    assert.strictEqual(rest.length, 0)
    assert.match(
      String(line),
      /^\d\d:\d\d:\d\d\.\d{3} WARN {2}node lost node=tower reason="no answer for 15 s" empty=""$/
    )
  })

  it("chooses the format by the stream, and colours only at a terminal", () => {
    const one = Effect.logInfo("x")
    assert.isTrue(record(one, { format: "auto" }, new Recorder(false))[0]?.startsWith("{"))
    assert.include(record(one, { format: "auto" }, new Recorder(true))[0], "INFO")
    assert.isFalse(record(one, { format: "pretty" }, new Recorder(false))[0]?.includes("\u001b"))
    assert.isTrue(record(one, { format: "json" }, new Recorder(true))[0]?.startsWith("{"))
  })

  it("leaves out what is below the level", () => {
    const all = Effect.all([
      Effect.logTrace("t"),
      Effect.logDebug("d"),
      Effect.logInfo("i"),
      Effect.logError("e")
    ])
    const messages = (level: LoggingOptions["level"]) =>
      json(record(all, { level })).map(({ message }) => message)
    assert.deepStrictEqual(messages("trace"), ["t", "d", "i", "e"])
    assert.deepStrictEqual(messages("info"), ["i", "e"])
    assert.deepStrictEqual(messages("error"), ["e"])
  })

  for (const format of ["json", "pretty"] as const) {
    it(`OB1 hostile text in message, field, key, annotation and cause is one bounded line (${format})`, () => {
      const logged = Effect.logError(evil, {
        reason: evil,
        [evil]: 1,
        nested: { deep: [evil, { evil }] }
      }).pipe(
        Effect.annotateLogs({ agent: evil }),
        Effect.andThen(Effect.logError("failed", new Refused({ why: evil }))),
        Effect.andThen(Effect.logInfo("fine"))
      )
      const lines = record(logged, { format })
      assert.strictEqual(lines.length, 3)
      for (const line of lines) {
        assert.notMatch(line, /[\p{Cc}\u2028\u2029]/u)
        assert.isBelow(line.length, 128 * 1024)
      }
      assert.include(lines[2], "fine")
      if (format === "json") {
        const [first] = json(lines)
        assert.isBelow(String(first?.reason).length, MAX_FIELD_CHARS + 64)
        assert.isTrue(String(first?.reason).startsWith("first\\u{a}second\\u{d}\\u{1b}[2J"))
      }
    })
  }

  it.effect.prop(
    "OB1 whatever is logged is one line of JSON",
    { text: Schema.String, value: Schema.Json },
    ({ text, value }) =>
      Effect.sync(() => {
        for (const format of ["json", "pretty"] as const) {
          const lines = record(Effect.logInfo(text, { text, value, [text]: text }), { format })
          assert.strictEqual(lines.length, 1)
          assert.notMatch(lines[0] ?? "", /\p{Cc}/u)
          if (format === "json") assert.isObject(JSON.parse(lines[0] ?? ""))
        }
      })
  )

  it("OB3 shows nothing of what is redacted, and bytes only as a number", () => {
    const lines = record(
      Effect.logInfo("x", {
        token: Redacted.make("sekrit"),
        inner: { key: Redacted.make("sekrit") },
        frame: new Uint8Array([1, 2, 3]),
        after: Duration.seconds(2)
      })
    )
    const { message, level, time, ...fields } = json(lines)[0] ?? {}
    assert.deepStrictEqual(fields, {
      token: "<redacted>",
      inner: { key: "<redacted>" },
      frame: "<3 bytes>",
      after: "2000ms"
    })
    assert.notInclude(lines.join(), "sekrit")
  })

  it("survives values that are cyclic, deep, huge or throw", () => {
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    const trap = Object.defineProperty({}, "bad", {
      enumerable: true,
      get: () => {
        throw new Error("trap")
      }
    })
    const many = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, index) => [`k${index}`, "v".repeat(1000)])
    )
    const lines = record(
      Effect.logInfo("x", {
        big: 10n,
        nan: Number.NaN,
        level: "mine",
        cyclic,
        trap,
        many,
        list: Array(1e5).fill(evil)
      })
    )
    assert.strictEqual(lines.length, 1)
    assert.isBelow(lines[0]?.length ?? 0, 256 * 1024)
    const [entry] = json(lines)
    assert.deepInclude(entry, {
      big: "10",
      nan: "NaN",
      _level: "mine",
      level: "info",
      trap: { bad: "<unreadable>" }
    })
  })

  it("writes an expected failure as its message and a defect with its stack, in one line", () => {
    const failed = Effect.fail(new Refused({ why: "no such node" })).pipe(
      Effect.catchCause((cause) => Effect.logError("a", cause))
    )
    const died = Effect.die(new Error("boom")).pipe(Effect.catchCause((cause) => Effect.logError("b", cause)))
    const [a, b] = json(record(Effect.andThen(failed, died)))
    assert.strictEqual(a?.cause, "Refused: no such node")
    assert.match(String(b?.cause), /^Error: boom\\u\{a\} +at /)
  })

  it("ED7 a full disk costs lines, and they are counted when there is room again", () => {
    const stream = new Recorder()
    stream.failing = true
    record(Effect.andThen(Effect.logInfo("lost"), Effect.logInfo("lost too")), {}, stream)
    assert.deepStrictEqual(stream.written, [])
    const layer = loggingLayer({ level: "info", format: "json", stream })
    const program = Effect.gen(function* () {
      yield* Effect.logInfo("lost")
      yield* Effect.logInfo("lost")
      yield* Effect.sync(() => {
        stream.failing = false
      })
      yield* Effect.logInfo("kept")
      yield* Effect.logInfo("kept")
    })
    Effect.runSync(Effect.provide(program, layer))
    assert.deepStrictEqual(
      json(stream.lines).map(({ lines, message }) => [message, lines]),
      [
        ["log lines left out", 2],
        ["kept", undefined],
        ["kept", undefined]
      ]
    )
  })

  it("ED7 a reader that does not read costs lines, not memory", () => {
    const stream = new Recorder()
    stream.writableLength = MAX_WAITING_BYTES + 1
    assert.deepStrictEqual(record(Effect.logInfo("x"), {}, stream), [])
    stream.writableLength = 0
    stream.destroyed = true
    assert.deepStrictEqual(record(Effect.logInfo("x"), {}, stream), [])
  })

  it.live("ED7 a process goes on when its stderr is closed, and when nobody reads it", () =>
    Effect.promise(async () => {
      for (const close of [true, false]) {
        const child = spawn(
          process.execPath,
          [new URL("testing/logUntilTold.ts", import.meta.url).pathname],
          {
            stdio: ["pipe", "pipe", "pipe"]
          }
        )
        child.stderr.pause()
        if (close) child.stderr.destroy()
        child.stdin.write("go\n")
        const [answer] = (await once(child.stdout, "data")) as [Buffer]
        assert.strictEqual(String(answer), "still here\n")
        child.stdin.end()
        const [code] = (await once(child, "exit")) as [number | null]
        assert.strictEqual(code, 0)
      }
    })
  )
})
