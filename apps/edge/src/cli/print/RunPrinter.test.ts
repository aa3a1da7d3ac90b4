import { assert, describe, it } from "@effect/vitest"
import type { RunEventView } from "../../admin/RunEventView.ts"
import { RunPrinter, type RunPrinterOptions } from "./RunPrinter.ts"

const terminal = { terminal: true, colors: false }
const pipe = { terminal: false, colors: false }

/** What the events look like; times are left out. */
const printed = (options: RunPrinterOptions, events: ReadonlyArray<RunEventView>): string => {
  const printer = new RunPrinter(options, performance.now())
  return events
    .map((event) => printer.print(event))
    .join("")
    .replace(/\d+(\.\d+)? m?s/g, "TIME")
}

const dispatched: RunEventView = { seq: 1, type: "dispatched", node: "gpu-1", attempt: 1, queue_ms: 0 }
const completed: RunEventView = {
  seq: 9,
  type: "completed",
  finish_reason: "stop",
  usage: { input_tokens: 3, output_tokens: 5 }
}
const piece = (text: string, kind: "text" | "reasoning" = "text", choice = 0): RunEventView => ({
  seq: 2,
  type: "delta",
  kind,
  choice,
  text
})
const call = (index: number, args: string, name?: string): RunEventView => ({
  seq: 3,
  type: "delta",
  kind: "tool_call",
  choice: 0,
  index,
  arguments: args,
  ...(name === undefined ? {} : { name })
})

describe("a run for a person", () => {
  it("is its text and a line about how it went", () => {
    assert.strictEqual(
      printed(terminal, [dispatched, piece("Hello"), piece(" you"), completed]),
      "Hello you\n[gpu-1, 3 in 5 out tokens, TIME]\n"
    )
  })

  it("has thinking apart from the answer, and dim", () => {
    assert.strictEqual(
      printed({ terminal: true, colors: true }, [piece("hm", "reasoning"), piece("ok"), completed]),
      "\u001b[2mhm\u001b[22m\nok\n\u001b[2m[3 in 5 out tokens, TIME]\u001b[22m\n"
    )
  })

  it("has each tool call on a line of its own, however it is cut", () => {
    assert.strictEqual(
      printed(terminal, [
        piece("Let me see."),
        call(0, "", "look"),
        call(0, `{"a":`),
        call(0, "1}"),
        call(1, "{}", "find"),
        completed
      ]),
      `Let me see.\n→ look {"a":1}\n→ find {}\n[3 in 5 out tokens, TIME]\n`
    )
  })

  it("says when it waits, fails over, fails and is cancelled", () => {
    assert.strictEqual(
      printed(terminal, [
        { seq: 1, type: "queued", ahead: 2 },
        { ...dispatched, attempt: 2, node: "mac" },
        {
          seq: 4,
          type: "failed",
          code: "adapter_error",
          message: "backend is\ngone\u001b[2J",
          retryable: false
        }
      ]),
      "[waits for a slot, 2 before it]\n[attempt 2, on mac]\n[mac, attempt 2, TIME, failed: adapter_error: backend is gone␛[2J]\n"
    )
    assert.strictEqual(
      printed(terminal, [piece("half"), { seq: 4, type: "cancelled", reason: "asked for by console" }]),
      "half\n[TIME, cancelled: asked for by console]\n"
    )
  })

  it("says that it waits for a lost node, and that the node is back", () => {
    assert.strictEqual(
      printed(terminal, [
        piece("half"),
        { seq: 4, type: "interrupted", node: "mac", reason: "reset", grace_ms: 30_000 },
        { seq: 5, type: "resumed", node: "mac" },
        piece("whole")
      ]),
      "half\n[mac lost: reset; waits up to TIME for it]\n[mac is back]\nwhole"
    )
  })

  it("says why an answer ended, when it is not the usual end", () => {
    assert.strictEqual(
      printed(terminal, [piece("cut"), { seq: 4, type: "completed", finish_reason: "length" }]),
      "cut\n[TIME, ended by length]\n"
    )
  })

  it("shows vectors by their beginning, choices by their number", () => {
    assert.strictEqual(
      printed(terminal, [
        { seq: 2, type: "delta", kind: "embedding", choice: 0, index: 1, values: [0.5, 1, 2, 3, 4] },
        { seq: 4, type: "completed", finish_reason: "stop" }
      ]),
      "[1] 5 values: 0.5000, 1.000, 2.000, 3.000, …\n[TIME]\n"
    )
    assert.strictEqual(
      printed(terminal, [
        piece("one"),
        piece("two", "text", 1),
        { seq: 4, type: "completed", finish_reason: "stop" }
      ]),
      "one\n[choice 1]\ntwo\n[TIME]\n"
    )
  })

  it("OB1 obeys no escape sequence of a node", () => {
    assert.strictEqual(printed(terminal, [piece("\u001b]0;owned\u0007")]), "␛]0;owned␇")
  })
})

describe("a run that was submitted elsewhere", () => {
  it("has no time, since nobody here knows when it began", () => {
    const printer = new RunPrinter(terminal, undefined)
    const shown = [dispatched, piece("Hello"), completed].map((event) => printer.print(event)).join("")
    assert.strictEqual(shown, "Hello\n[gpu-1, 3 in 5 out tokens]\n")
    const plain = new RunPrinter(terminal, undefined)
    assert.strictEqual(plain.print({ seq: 1, type: "completed", finish_reason: "stop" }), "")
  })
})

describe("a run for a pipe", () => {
  it("ends its line when its events end without an end", () => {
    const printer = new RunPrinter(pipe, 0)
    printer.print(piece("half"))
    assert.strictEqual(printer.finish(), "\n")
    assert.strictEqual(printer.finish(), "")
  })

  it("is the text and nothing else, with a line end after it", () => {
    assert.strictEqual(printed(pipe, [dispatched, piece("Hello\u001b[0m"), completed]), "Hello\u001b[0m\n")
    assert.strictEqual(printed(pipe, [dispatched, piece("Hello\n"), completed]), "Hello\n")
  })
})
