// FR5: TCP may cut a stream of frames anywhere. The same session, cut at every place, means the same to the edge.
import { describe, expect, it } from "vitest"
import { ChaosProxy } from "./harness/ChaosProxy.ts"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { MockNode } from "./harness/MockNode.ts"
import { nodeFrame, RawNode, registerBody } from "./harness/RawNode.ts"
import { type EventInit, textEvent } from "./harness/RawRun.ts"
import { useEdge } from "./harness/useEdge.ts"

describe("an edge whose nodes' bytes come in pieces", () => {
  const shared = useEdge({ nodes: [mockNodeConfig("tower"), mockNodeConfig("laptop")] })

  /** The edge has read what was written before, when it has answered something that was asked after. */
  const edgeHasRead = () => shared.edge.admin.status("/healthz")

  const sendCut = async (node: RawNode, bytes: Buffer, at: number) => {
    node.sendBytes(bytes.subarray(0, at))
    await edgeHasRead()
    node.sendBytes(bytes.subarray(at))
  }

  it("FR5 a registration and a status, cut at every byte, register the node", async () => {
    const first = await shared.node("tower")
    const revision = first.accepted?.config?.revision ?? ""
    const opening = Buffer.concat([
      nodeFrame(registerBody({ token: tokenOf("laptop"), bootId: Buffer.alloc(16, 1) }))
      // Nothing may follow the registration before its answer; the rest comes after it.
    ])
    const rest = Buffer.concat([
      nodeFrame({ case: "pong", value: { nonce: 1 } }),
      nodeFrame({
        case: "nodeStatus",
        value: {
          configRevision: revision,
          adapters: [{ name: "mock", state: 2, targets: [{ name: "echo" }] }]
        }
      }),
      nodeFrame({ case: "goodbye", value: { code: 1, message: "bye" } })
    ])
    for (let at = 1; at < opening.length; at++) {
      const node = await RawNode.connect(shared.cleanup, shared.edge.nodes)
      await sendCut(node, opening, at)
      const { result } = await node.take("registerResponse")
      expect(result.case, `cut at ${at}`).toBe("accepted")
      node.socket.destroy()
    }
    for (let at = 1; at < rest.length; at++) {
      const node = await RawNode.register(shared.cleanup, shared.edge.nodes, {
        token: tokenOf("laptop"),
        bootId: Buffer.alloc(16, 1)
      })
      await sendCut(node, rest, at)
      const end = await node.closed
      expect(end.reset, `cut at ${at}`).toBe(false)
    }
    const { last_disconnect } = await shared.edge.admin.untilNode("laptop", "offline")
    expect(last_disconnect?.reason).toContain("bye")
  })

  it("FR5 the events of a run, cut at every byte, are the same answer", async () => {
    const node = await shared.node("tower")
    const answer: ReadonlyArray<EventInit> = [
      { case: "started", value: {} },
      textEvent("가"),
      textEvent("b".repeat(130)),
      { case: "usage", value: { inputTokens: 1, outputTokens: 2 } },
      { case: "completed", value: { finishReason: 1 } }
    ]
    const events = (handle: number) =>
      Buffer.concat(
        answer.map((event, i) => nodeFrame({ case: "runEvent", value: { handle, seq: i + 1, event } }))
      )
    const length = events(1).length
    for (let at = 1; at < length; at++) {
      const stream = await shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x" })
      const run = await node.nextRun()
      await sendCut(node, events(run.handle), at)
      expect((await stream.finish()).type, `cut at ${at}`).toBe("completed")
      expect(stream.text).toBe(`가${"b".repeat(130)}`)
    }
  })

  it("FR5 a real node works over a network that passes one byte at a time", async () => {
    const proxy = await ChaosProxy.open(shared.cleanup, shared.edge.nodes)
    proxy.weather.up.slice = 1
    proxy.weather.down.slice = 1
    new MockNode(shared.cleanup, { edge: proxy.address, token: tokenOf("laptop") })
    await shared.edge.admin.untilNode("laptop", "routable")
    const prompt = "조각조각 나도 같은 말 👩‍👩‍👧‍👦 ".repeat(5)
    const stream = await shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt })
    expect((await stream.finish()).type).toBe("completed")
    expect(stream.text).toBe(prompt)
  })
})
