// What is typed into the real console reaches the real node over the real edge and comes back as it was, however the
// answer was cut into pieces on its way.
import { describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { MockNode } from "./harness/MockNode.ts"
import { RawHttp } from "./harness/RawHttp.ts"
import { runCommand } from "./harness/runCommand.ts"
import { SseParser } from "./harness/SseParser.ts"
import { useEdge } from "./harness/useEdge.ts"

const texts = [
  "안녕하세요, 오늘은 날씨가 참 좋네요. 조합형: \u1112\u1161\u11ab",
  "🙂 emoji with skin 👍🏽, flags 🇰🇷, keycap 1️⃣",
  "a family 👨‍👩‍👧‍👦 and another 👩‍❤️‍💋‍👨 in one word👨‍👩‍👧‍👦word",
  'plain ascii, \t tabs, "quotes", back\\slashes and an end'
]

const seeds = [1, 2, 3, 5, 8, 13]

/** What the console is given: each text with each seed, in pieces of at most two code points. */
const lines = seeds.flatMap((seed) =>
  texts.map((text, i) => ({ text, line: `${text} {"seed": ${seed}, "size": ${1 + ((seed + i) % 3)}}` }))
)

describe("a text on its way through everything", () => {
  const shared = useEdge({ nodes: [mockNodeConfig("tower")] })

  const mockNode = async () => {
    new MockNode(shared.cleanup, { edge: shared.edge.nodes, token: tokenOf("tower") })
    await shared.edge.admin.untilNode("tower", "routable")
  }
  const console_ = (input: string | Uint8Array, ...flags: ReadonlyArray<string>) =>
    runCommand(["console", "--connect", shared.edge.admin.base, ...flags, "mock", "echo"], { input })

  it("comes back from a plain console byte for byte, for every seed", async () => {
    await mockNode()
    const { code, stdoutBytes, stderr } = await console_(lines.map(({ line }) => `${line}\n`).join(""))
    expect(stderr).toBe("")
    expect(code).toBe(0)
    expect(stdoutBytes.equals(Buffer.from(lines.map(({ text }) => `${text}\n`).join("")))).toBe(true)
  })

  it("comes back from a console with --json byte for byte, for every seed", async () => {
    await mockNode()
    const { code, stdout, stderr } = await console_(lines.map(({ line }) => `${line}\n`).join(""), "--json")
    expect(stderr).toBe("")
    expect(code).toBe(0)
    const answers = new Map<string, { text: string; deltas: number; terminals: number }>()
    for (const line of stdout.trimEnd().split("\n")) {
      const event = JSON.parse(line) as { run: string; type: string; text?: string }
      const answer = answers.get(event.run) ?? { text: "", deltas: 0, terminals: 0 }
      answers.set(event.run, answer)
      if (event.type === "delta") {
        answer.text += event.text
        answer.deltas += 1
      }
      if (["completed", "failed", "cancelled"].includes(event.type)) answer.terminals += 1
    }
    const given = lines.map(({ text }) => text)
    const back = [...answers.values()]
    expect(back.map(({ text }) => text)).toEqual(given)
    for (const [i, { deltas, terminals }] of back.entries()) {
      expect(terminals).toBe(1)
      // It really was cut: at most three code points in a piece.
      expect(deltas).toBeGreaterThanOrEqual([...given[i]!].length / 3)
    }
  })

  it("has a lone surrogate replaced, and nothing crashes", async () => {
    const node = await shared.node("tower")
    for (const [sent, received] of [
      ["before \ud83d after", "before \ufffd after"],
      ["\udc00", "\ufffd"],
      ["half a family 👨‍\ud83d", "half a family 👨‍\ufffd"]
    ] as const) {
      // JSON.stringify would hide a lone surrogate from nobody: it escapes it.
      const stream = await shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: sent })
      const run = await node.nextRun()
      expect(run.text).toBe(received)
      run.answer(run.text)
      await stream.finish()
      expect(stream.text).toBe(received)
    }
  })

  it("has bytes that are no UTF-8 refused in a request and replaced at the console, and nothing crashes", async () => {
    await mockNode()
    const http = await RawHttp.open(shared.cleanup, shared.edge.http)
    const body = Buffer.concat([
      Buffer.from('{"adapter":"mock","target":"echo","prompt":"'),
      Buffer.from([0xed, 0xa0, 0xbd, 0xff]),
      Buffer.from('"}')
    ])
    http.write(
      `POST /admin/v1/runs?events=true HTTP/1.1\r\nHost: 127.0.0.1:${shared.edge.http.port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    )
    http.write(body)
    const head = await http.head()
    expect(head.status).toBe(400)
    expect(await http.body(head)).toContain("UTF-8")
    const { code, stdout } = await console_(Buffer.from([0x61, 0xed, 0xa0, 0xbd, 0x62, 0x0a]))
    expect(code).toBe(0)
    expect(stdout).toMatch(/^a\ufffd+b\n$/)
  })

  it("survives a connection that brings the request in single bytes", async () => {
    const node = await shared.node("tower")
    const http = await RawHttp.open(shared.cleanup, shared.edge.http)
    const text = texts[2]!
    const body = Buffer.from(JSON.stringify({ adapter: "mock", target: "echo", prompt: text }))
    const head = `POST /admin/v1/runs?events=true HTTP/1.1\r\nHost: 127.0.0.1:${shared.edge.http.port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    for (const byte of Buffer.concat([Buffer.from(head), body])) {
      http.write(Buffer.from([byte]))
      await new Promise((resolve) => setImmediate(resolve))
    }
    const run = await node.nextRun()
    expect(run.text).toBe(text)
    run.answer(...text)
    expect((await http.head()).status).toBe(200)
    const parser = new SseParser()
    for (let chunk = await http.chunk(); chunk !== undefined; chunk = await http.chunk()) parser.push(chunk)
    const events = parser.events.map(({ data }) => JSON.parse(data) as { type: string; text?: string })
    expect(events.map((event) => event.text ?? "").join("")).toBe(text)
    expect(events.at(-1)?.type).toBe("completed")
  })
})
