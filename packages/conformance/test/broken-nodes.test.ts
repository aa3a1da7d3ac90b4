// A node that breaks a rule is found out, by that rule: the fake node behind a proxy that breaks it.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import {
  type EdgeFrame,
  EdgeFrameSchema,
  type NodeFrame,
  NodeFrameSchema
} from "@iop/platform-common/gen/iop/v1/frame_pb"
import type { RunEvent } from "@iop/platform-common/gen/iop/v1/run_event_pb"
import {
  AdapterState,
  AdapterStatusSchema,
  NodeStatusSchema
} from "@iop/platform-common/gen/iop/v1/status_pb"
import { expect, test } from "vitest"
import { frameOf } from "../src/peer/framing.ts"
import { judgeNode } from "./kit.ts"
import type { Mutation, Mutations } from "./MutatingProxy.ts"

type NodeBody = NodeFrame["body"]
type BodyOf<Case extends NodeBody["case"]> = Extract<NodeBody, { case: Case }>["value"]

/** Changes bodies of one kind that the node sends. Nothing returned: the changed frame goes on. */
const ofNode =
  <Case extends NonNullable<NodeBody["case"]>>(
    kind: Case,
    change: (value: BodyOf<Case>, frame: NodeFrame) => ReadonlyArray<NodeFrame> | undefined
  ): Mutation =>
  (payload) => {
    const frame = fromBinary(NodeFrameSchema, payload)
    if (frame.body.case !== kind) return undefined
    const frames = change(frame.body.value as BodyOf<Case>, frame) ?? [frame]
    return frames.map((one) => frameOf(toBinary(NodeFrameSchema, one)))
  }

/** Keeps bodies of one kind that the kit sends away from the node. */
const deafTo =
  (kind: EdgeFrame["body"]["case"]): Mutation =>
  (payload) =>
    fromBinary(EdgeFrameSchema, payload).body.case === kind ? [] : undefined

const isTerminal = ({ event }: RunEvent): boolean =>
  event.case === "completed" || event.case === "failed" || event.case === "cancelled"

const broken: ReadonlyArray<readonly [rule: string, what: string, mutations: () => Mutations]> = [
  [
    "R-FRAME-2",
    "takes a length of 0",
    () => ({ down: (payload) => (payload.length === 0 ? [] : undefined) })
  ],
  [
    "R-REG-1",
    "introduces itself after something else",
    () => ({
      up: ofNode("registerRequest", (_, frame) => [
        create(NodeFrameSchema, { body: { case: "pong", value: {} } }),
        frame
      ])
    })
  ],
  [
    "R-REG-3",
    "does not wait for its answer",
    () => ({
      up: ofNode("registerRequest", (_, frame) => [
        frame,
        create(NodeFrameSchema, { body: { case: "nodeStatus", value: create(NodeStatusSchema) } })
      ])
    })
  ],
  [
    "R-REG-5",
    "speaks another version",
    () => ({
      up: ofNode("registerRequest", ({ protocolVersion }) => {
        if (protocolVersion !== undefined) protocolVersion.major = 2
        return undefined
      })
    })
  ],
  [
    "R-REG-6",
    "sends another token",
    () => ({
      up: ofNode("registerRequest", (request) => {
        request.token += "x"
        return undefined
      })
    })
  ],
  [
    "R-REG-7",
    "makes a boot id per link",
    () => {
      const own = Buffer.from(`${performance.now()}`.padEnd(16, "0").slice(0, 16))
      return {
        up: ofNode("registerRequest", (request) => {
          request.bootId = own
          return undefined
        })
      }
    }
  ],
  [
    "R-LINK-1",
    "answers with another nonce",
    () => ({
      up: ofNode("pong", (pong) => {
        pong.nonce = (pong.nonce + 1) >>> 0
        return undefined
      })
    })
  ],
  [
    "R-CONF-1",
    "keeps to its first revision",
    () => ({
      up: ofNode("nodeStatus", (status) => {
        status.configRevision = "first"
        return undefined
      })
    })
  ],
  [
    "R-CONF-2",
    "reports adapters of its own",
    () => ({
      up: ofNode("nodeStatus", (status) => {
        status.adapters.push(create(AdapterStatusSchema, { name: "mine", state: AdapterState.READY }))
        return undefined
      })
    })
  ],
  [
    "R-CONF-3",
    "claims that all is ready",
    () => ({
      up: ofNode("nodeStatus", (status) => {
        for (const adapter of status.adapters) adapter.state = AdapterState.READY
        return undefined
      })
    })
  ],
  [
    "R-RUN-1",
    "mixes up handles",
    () => ({
      up: ofNode("runEvent", (event) => {
        if (event.handle === 2) event.handle = 77
        return undefined
      })
    })
  ],
  [
    "R-RUN-3",
    "loses an event",
    () => ({ up: ofNode("runEvent", ({ seq }) => (seq === 4 ? [] : undefined)) })
  ],
  [
    "R-RUN-4",
    "sends an event twice",
    () => ({ up: ofNode("runEvent", ({ seq }, frame) => (seq === 2 ? [frame, frame] : undefined)) })
  ],
  [
    "R-RUN-5",
    "does not say that it has started",
    () => ({
      up: ofNode("runEvent", (event) => {
        if (event.event.case === "started") return []
        event.seq -= 1
        return undefined
      })
    })
  ],
  [
    "R-RUN-6",
    "goes on after the end",
    () => ({
      up: ofNode("runEvent", (event, frame) => {
        if (!isTerminal(event)) return undefined
        const more = fromBinary(NodeFrameSchema, toBinary(NodeFrameSchema, frame))
        if (more.body.case === "runEvent") more.body.value.seq += 1
        return [frame, more]
      })
    })
  ],
  [
    "R-RUN-8",
    "calls a rejection final",
    () => ({
      up: ofNode("runEvent", ({ event }) => {
        if (event.case === "failed") event.value.retryable = false
        return undefined
      })
    })
  ],
  [
    "R-RUN-9",
    "streams what is to be whole",
    () => ({
      down: (payload) => {
        const frame = fromBinary(EdgeFrameSchema, payload)
        if (frame.body.case !== "runRequest") return undefined
        frame.body.value.stream = true
        return [frameOf(toBinary(EdgeFrameSchema, frame))]
      }
    })
  ],
  [
    "R-FLOW-1",
    "knows no window",
    () => ({
      up: (payload, back) => {
        const { body } = fromBinary(NodeFrameSchema, payload)
        if (body.case !== "runEvent") return undefined
        const { handle, seq } = body.value
        back(
          toBinary(
            EdgeFrameSchema,
            create(EdgeFrameSchema, { body: { case: "runAck", value: { handle, seq } } })
          )
        )
        return undefined
      }
    })
  ],
  [
    "R-FLOW-4",
    "forgets its runs with the link",
    () => ({
      up: ofNode("registerRequest", (request) => {
        request.heldRuns = []
        return undefined
      })
    })
  ],
  ["R-CANCEL-1", "does not hear cancels", () => ({ down: deafTo("runCancel") })],
  ["R-DRAIN-1", "does not hear that it is drained", () => ({ down: deafTo("drain") })],
  ["R-BYE-1", "leaves without a word", () => ({ up: ofNode("goodbye", () => []) })],
  ["R-FLOW-5", "takes every acknowledgement", () => ({ down: deafTo("runAck") })]
]

/** Rules of each kind; all of them are judged without a proxy in `command.test.ts`. */
const untouched = ["R-FRAME-2", "R-REG-7", "R-RUN-9", "R-FLOW-4", "R-BYE-1"]

test("a node behind a proxy that changes nothing breaks no rule", async () => {
  const results = await judgeNode(untouched)
  expect(results.map(({ id, outcome }) => [id, outcome])).toEqual(untouched.map((id) => [id, "ok"]))
})

/** A broken node does what it does at once; what it does not, it never does. */
const PATIENCE_MS = 1500

test.each(broken)("%s fails for a node that %s", async (rule, _, mutations) => {
  const [result, ...more] = await judgeNode([rule], mutations, PATIENCE_MS)
  expect(more).toEqual([])
  expect(result?.id).toBe(rule)
  expect(result?.outcome).toBe("failed")
  expect(result?.detail).toMatch(/expected .+; came .+/)
})
