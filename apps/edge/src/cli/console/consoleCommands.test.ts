import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { NodeView } from "../../admin/NodeView.ts"
import { completeLine, firstTarget } from "./completeLine.ts"
import { consoleCommands, helpText, parseConsoleLine } from "./consoleCommands.ts"

describe("a line at the console", () => {
  it("is a prompt, as it was typed", () => {
    assert.deepStrictEqual(parseConsoleLine("  hello there "), { type: "prompt", text: "  hello there " })
    assert.deepStrictEqual(parseConsoleLine("//etc is a folder"), {
      type: "prompt",
      text: "/etc is a folder"
    })
    assert.deepStrictEqual(parseConsoleLine("   "), { type: "nothing" })
  })

  it("is a command with its words", () => {
    assert.deepStrictEqual(parseConsoleLine("/use mock  echo"), {
      type: "use",
      adapter: "mock",
      target: "echo"
    })
    assert.deepStrictEqual(parseConsoleLine("/cancel"), { type: "cancel", run: undefined })
    assert.deepStrictEqual(parseConsoleLine("/cancel R1"), { type: "cancel", run: "R1" })
    assert.deepStrictEqual(parseConsoleLine("/explain"), {
      type: "explain",
      adapter: undefined,
      target: undefined
    })
    assert.deepStrictEqual(parseConsoleLine(" /quit "), { type: "quit" })
  })

  it("that is no command says so, and how the command is written", () => {
    assert.deepStrictEqual(parseConsoleLine("/use mock"), {
      type: "mistake",
      message: "usage: /use ADAPTER TARGET"
    })
    for (const line of ["/nodes all", "/use a b c", "/explain a", "/cancel a b", "/quit now"]) {
      assert.strictEqual(parseConsoleLine(line).type, "mistake", line)
    }
    const unknown = parseConsoleLine("/frob")
    assert.match(unknown.type === "mistake" ? unknown.message : "", /no command \/frob/)
  })

  it("is never a mistake when it is a command of the list", () => {
    for (const { name, usage } of consoleCommands) {
      const line = usage.replace(/\[.*\]/, "").trim()
      assert.strictEqual(parseConsoleLine(line).type, name.slice(1))
      assert.include(helpText(), usage)
    }
  })
})

const node = (
  alias: string,
  state: "routable" | "offline",
  adapters: Readonly<Record<string, ReadonlyArray<string>>>
) =>
  Schema.decodeUnknownSync(NodeView)({
    id: alias,
    alias,
    state,
    reason: "",
    labels: {},
    cordoned: false,
    slots_in_use: 0,
    adapters: Object.entries(adapters).map(([name, targets]) => ({
      name,
      type: "mock",
      state: targets.length === 0 ? "starting" : "ready",
      reason: "",
      slots: { total: 1, in_use: 0 },
      targets: targets.map((target) => ({ name: target, capabilities: [] })),
      circuit: { state: "closed" }
    }))
  })

const nodes = [
  node("a", "offline", { llama: ["qwen"] }),
  node("b", "routable", { coder: [], mock: ["echo", "embed"] }),
  node("c", "routable", { mock: ["count", "echo"] })
]

describe("completion", () => {
  it("offers commands, adapters and targets, each once", () => {
    assert.deepStrictEqual(completeLine("/n", nodes), [["/nodes "], "/n"])
    assert.strictEqual(completeLine("/", nodes)[0].length, consoleCommands.length)
    assert.deepStrictEqual(completeLine("/use ", nodes), [["coder ", "llama ", "mock "], ""])
    assert.deepStrictEqual(completeLine("/use m", nodes), [["mock "], "m"])
    assert.deepStrictEqual(completeLine("/explain mock e", nodes), [["echo ", "embed "], "e"])
    assert.deepStrictEqual(completeLine("/use mock ", nodes)[0], ["count ", "echo ", "embed "])
  })

  it("offers nothing where nothing is known", () => {
    for (const line of ["hello", "/runs x", "/use nope x", "/use mock echo x", ""]) {
      assert.deepStrictEqual(completeLine(line, nodes)[0], [], line)
    }
  })
})

describe("the first choice", () => {
  it("is a target that takes runs", () => {
    assert.deepStrictEqual(firstTarget(nodes), { adapter: "mock", target: "echo" })
    assert.isUndefined(firstTarget(nodes.slice(0, 1)))
  })
})
