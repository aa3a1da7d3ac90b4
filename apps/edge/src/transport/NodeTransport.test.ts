import { expect, it } from "vitest"
import { eventually } from "../../e2e/harness/waiting.ts"
import { dispatch, RecordingSink, startEdge } from "../../test/transportFixture.ts"

it("registers a node, sends it a run and routes the events to the run", async () => {
  await using edge = await startEdge()
  const node = await edge.node("tower", { offers: { mock: ["echo"] } })
  expect(node.accepted).toMatchObject({
    nodeId: "tower",
    alias: "tower-box",
    edgeId: "test-edge",
    heartbeatIntervalMs: 5000,
    heartbeatSuspectAfter: 2,
    heartbeatDeadAfter: 3,
    limits: {
      maxNodeFrameBytes: 1024 * 1024,
      maxEdgeFrameBytes: 32 * 1024 * 1024,
      runWindowBytes: 256 * 1024
    }
  })
  const entry = edge.registry.find("tower-box")!
  const status = await eventually("the status", () => entry.status)
  expect(status.revision).toBe(node.accepted?.config?.revision)
  expect(status.adapters.get("mock")).toMatchObject({ state: "ready", targets: [{ name: "echo" }] })

  const link = await edge.link("tower")
  const sink = new RecordingSink()
  const sent = link.sendRun(dispatch({ runId: "run-7" }), sink)
  const request = await node.take("runRequest")
  expect(sent).toEqual({ handle: request.handle })
  expect(request).toMatchObject({ runId: "run-7", attempt: 1, adapter: "mock", target: "echo", stream: true })

  node.send(
    { case: "runEvent", value: { handle: request.handle, seq: 1, event: { case: "started", value: {} } } },
    {
      case: "runEvent",
      value: {
        handle: request.handle,
        seq: 2,
        event: { case: "delta", value: { content: { case: "text", value: "hi" } } }
      }
    },
    {
      case: "runEvent",
      value: { handle: request.handle, seq: 3, event: { case: "completed", value: { finishReason: 1 } } }
    }
  )
  await eventually("all events", () => sink.calls.at(-1) === "end" && sink.events.length === 3)
  expect(sink.calls).toEqual(["1 started", "2 delta hi", "3 completed", "end"])
})
