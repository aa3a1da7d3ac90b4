// LK7: a node that talks without end, next to one that works.
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { describe, expect, it } from "vitest"
import { mockNodeConfig, tokenOf } from "./harness/config.ts"
import { type NodeBody, nodeFrame } from "./harness/RawNode.ts"
import { useEdge } from "./harness/useEdge.ts"
import { eventually, within } from "./harness/waiting.ts"

const FRAMES = 10_000
const PIECES = 200

describe("an edge with a chatty node", () => {
  const shared = useEdge({
    nodes: [
      mockNodeConfig("tower"),
      mockNodeConfig("laptop", { adapters: [{ name: "other", type: "mock", slots: 4 }] })
    ],
    link: { heartbeat_interval: "200ms", resume_grace: "300ms" }
  })

  const talk: ReadonlyArray<readonly [string, NodeBody]> = [
    [
      "NodeStatus",
      {
        case: "nodeStatus",
        value: { configRevision: "r", adapters: [{ name: "mock", reason: "I have news" }] }
      }
    ],
    ["Pong", { case: "pong", value: { nonce: 1 } }]
  ]

  it.each(talk)(
    "LK7 ends the link of %s frames by the thousand, with a reason, and disturbs nobody else",
    async (_name, body) => {
      const chatty = await shared.node("tower")
      const { cleanup, edge } = shared
      const quiet = await edge.node(cleanup, {
        id: "laptop",
        token: tokenOf("laptop"),
        offers: { other: ["echo"] }
      })
      const stream = await edge.admin.stream({ adapter: "other", target: "echo", prompt: "x" })
      const run = await quiet.nextRun()
      run.started()
      const pieces = Array.from({ length: PIECES }, (_, i) => `${i} `)
      let next = 0
      const beat = setInterval(() => {
        const piece = pieces[next++]
        if (piece !== undefined) run.delta(piece)
      }, 5)
      cleanup.defer(() => clearInterval(beat))
      await stream.until("delta")
      const pings = quiet.pings
      const { epoch } = await edge.admin.node("laptop")
      const chattyErrors = async () =>
        (await edge.metrics()).count("iop_edge_link_protocol_errors_total", { kind: "chatty" })
      const before = await chattyErrors()
      chatty.sendBytes(Buffer.concat(Array.from({ length: FRAMES }, () => nodeFrame(body))))
      const goodbye = await chatty.take("goodbye")
      expect(goodbye.code).toBe(GoodbyeCode.PROTOCOL_ERROR)
      expect(goodbye.message).toMatch(/status and pong frames a second/)
      await within("the end of the chatty link", chatty.closed)
      expect(await chattyErrors()).toBe(before + 1)
      expect((await edge.admin.node("tower")).last_disconnect?.reason).toMatch(/status and pong frames/)
      await eventually("all pieces to be sent", () => next >= PIECES)
      run.completed()
      expect((await stream.finish()).type).toBe("completed")
      expect(stream.text).toBe(pieces.join(""))
      expect(quiet.pings).toBeGreaterThan(pings)
      expect((await edge.admin.node("laptop")).epoch).toBe(epoch)
      expect(
        edge.log.filter(
          ({ message, fields }) => message === "node misses heartbeats" && fields.node === "laptop"
        )
      ).toEqual([])
    }
  )

  it("LK7 leaves a node alone that only catches up after the path stood still", async () => {
    const node = await shared.node("tower")
    // A minute of answers at once.
    node.send(...Array.from({ length: 300 }, (_, nonce): NodeBody => ({ case: "pong", value: { nonce } })))
    const stream = await shared.edge.admin.stream({ adapter: "mock", target: "echo", prompt: "x" })
    ;(await node.nextRun()).answer("still here")
    await stream.finish()
    expect(stream.text).toBe("still here")
    expect(node.end).toBeUndefined()
  })
})
