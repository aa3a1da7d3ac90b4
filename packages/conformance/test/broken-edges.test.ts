// An edge that breaks a rule is found out, by that rule: the real edge behind a proxy that breaks it.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import {
  type EdgeFrame,
  EdgeFrameSchema,
  type NodeFrame,
  NodeFrameSchema
} from "@iop/platform-common/gen/iop/v1/frame_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { afterAll, beforeAll, expect, test } from "vitest"
import { frameOf, headerOf } from "../src/peer/framing.ts"
import { judgeEdge } from "./kit.ts"
import type { Mutation, Mutations } from "./MutatingProxy.ts"
import { type RunningEdge, startEdge } from "./processes.ts"

/** A mutation of frames of the kit, as a node. Undefined: the frame goes on as it is. */
const ofNode =
  (change: (frame: NodeFrame) => ReadonlyArray<NodeFrame> | undefined): Mutation =>
  (payload) => {
    // What is no message at all goes on to the edge, which has its own opinion of it.
    let frame: NodeFrame
    try {
      frame = fromBinary(NodeFrameSchema, payload)
    } catch {
      return undefined
    }
    return change(frame)?.map((one) => frameOf(toBinary(NodeFrameSchema, one)))
  }

/** A mutation of frames of the edge. */
const ofEdge =
  (change: (frame: EdgeFrame) => ReadonlyArray<EdgeFrame> | undefined): Mutation =>
  (payload) =>
    change(fromBinary(EdgeFrameSchema, payload))?.map((one) => frameOf(toBinary(EdgeFrameSchema, one)))

const dropped = (kind: EdgeFrame["body"]["case"]): Mutation =>
  ofEdge(({ body }) => (body.case === kind ? [] : undefined))

const broken: ReadonlyArray<readonly [rule: string, what: string, mutations: () => Mutations]> = [
  ["R-FRAME-2", "takes a length of 0", () => ({ up: (payload) => (payload.length === 0 ? [] : undefined) })],
  ["R-FRAME-3", "waits for a body that is too long", () => ({ up: () => undefined })],
  ["R-FRAME-5", "ends links without a word", () => ({ down: dropped("goodbye") })],
  [
    "R-FRAME-9",
    "ends links for what it does not know",
    () => ({ up: ofNode(({ body }) => (body.case === undefined ? [create(NodeFrameSchema)] : undefined)) })
  ],
  ["R-REG-1", "closes instead of saying MALFORMED", () => ({ down: dropped("registerResponse") })],
  [
    "R-REG-5",
    "takes every version",
    () => ({
      up: ofNode((frame) => {
        if (frame.body.case === "registerRequest" && frame.body.value.protocolVersion !== undefined) {
          frame.body.value.protocolVersion.major = 1
        }
        return [frame]
      })
    })
  ],
  [
    "R-REG-6",
    "says what is wrong with a token",
    () => {
      let length = 0
      return {
        up: ofNode((frame) => {
          if (frame.body.case === "registerRequest") length = frame.body.value.token.length
          return undefined
        }),
        down: ofEdge((frame) => {
          if (frame.body.case !== "registerResponse" || frame.body.value.result.case !== "rejected")
            return undefined
          frame.body.value.result.value.message = `no token has ${length} letters`
          return [frame]
        })
      }
    }
  ],
  [
    "R-REG-7",
    "takes every boot id",
    () => ({
      up: ofNode((frame) => {
        if (frame.body.case === "registerRequest") frame.body.value.bootId = Buffer.alloc(16, 7)
        return [frame]
      })
    })
  ],
  [
    "R-REG-8",
    "lets nobody in twice",
    () => ({
      down: ofEdge((frame) => {
        if (frame.body.case === "goodbye") return []
        if (frame.body.case !== "registerResponse" || frame.body.value.result.case !== "rejected")
          return undefined
        frame.body.value.result.value.code = RejectCode.UNKNOWN_TOKEN
        return [frame]
      })
    })
  ],
  ["R-LINK-1", "never pings", () => ({ down: dropped("ping") })],
  [
    "R-LINK-3",
    "lets a node send as much as it likes",
    () => {
      let pongs = 0
      return { up: ofNode(({ body }) => (body.case === "pong" && ++pongs > 1500 ? [] : undefined)) }
    }
  ],
  [
    "R-CONF-1",
    "does not look at revisions",
    () => {
      let revision = ""
      return {
        up: ofNode((frame) => {
          if (frame.body.case === "nodeStatus") frame.body.value.configRevision = revision
          return [frame]
        }),
        down: ofEdge(({ body }) => {
          if (body.case === "registerResponse" && body.value.result.case === "accepted") {
            revision = body.value.result.value.config?.revision ?? ""
          }
          return undefined
        })
      }
    }
  ],
  [
    "R-CONF-3",
    "routes to adapters that are not ready",
    () => ({
      up: ofNode((frame) => {
        if (frame.body.case !== "nodeStatus") return undefined
        for (const adapter of frame.body.value.adapters) adapter.state = AdapterState.READY
        return [frame]
      })
    })
  ],
  [
    "R-RUN-1",
    "never counts strays",
    () => {
      let strays = 0
      return { up: ofNode(({ body }) => (body.case === "runEvent" && ++strays > 50 ? [] : undefined)) }
    }
  ],
  ["R-RUN-3", "does not stop runs that broke a rule", () => ({ down: dropped("runCancel") })],
  [
    "R-RUN-4",
    "takes an event twice",
    () => {
      const last = new Map<number, number>()
      return {
        up: ofNode((frame) => {
          if (frame.body.case !== "runEvent") return undefined
          const { handle } = frame.body.value
          const seq = (last.get(handle) ?? 0) + 1
          last.set(handle, seq)
          frame.body.value.seq = seq
          return [frame]
        })
      }
    }
  ],
  [
    "R-RUN-9",
    "always streams",
    () => ({
      down: ofEdge((frame) => {
        if (frame.body.case === "runRequest") frame.body.value.stream = true
        return [frame]
      })
    })
  ],
  [
    "R-RUN-10",
    "gives one handle to all runs",
    () => ({
      down: ofEdge((frame) => {
        if (frame.body.case !== "runRequest") return undefined
        frame.body.value.handle = 1
        return [frame]
      })
    })
  ],
  ["R-FLOW-1", "never acknowledges", () => ({ down: dropped("runAck") })],
  [
    "R-FLOW-4",
    "forgets held runs",
    () => ({
      up: ofNode((frame) => {
        if (frame.body.case !== "registerRequest") return undefined
        frame.body.value.heldRuns = []
        return [frame]
      })
    })
  ],
  [
    "R-FLOW-5",
    "acknowledges what has not come",
    () => ({
      down: ofEdge((frame) => {
        if (frame.body.case !== "runAck") return undefined
        frame.body.value.seq += 1
        return [frame]
      })
    })
  ],
  [
    "R-CANCEL-2",
    "cancels twice",
    () => ({ down: ofEdge((frame) => (frame.body.case === "runCancel" ? [frame, frame] : undefined)) })
  ],
  [
    "R-DRAIN-1",
    "routes to draining nodes",
    () => ({
      up: ofNode((frame) => {
        if (frame.body.case === "nodeStatus") frame.body.value.draining = false
        return [frame]
      })
    })
  ],
  [
    "R-BYE-1",
    "does not believe a Goodbye",
    () => ({ up: ofNode(({ body }) => (body.case === "goodbye" ? [] : undefined)) })
  ],
  [
    "R-TEXT-1",
    "sends texts that are none",
    () => ({ down: () => [headerOf(3), Buffer.from([0xb2, 0x01, 0x7f])] })
  ]
]

const cleanup = new AsyncDisposableStack()
let edge: RunningEdge
beforeAll(async () => {
  edge = await startEdge(cleanup)
})
afterAll(() => cleanup.disposeAsync())

test("an edge behind a proxy that changes nothing breaks none of these rules", async () => {
  // Wrong tokens of this test would use up the minute's answers for the next one; see `command.test.ts`.
  const rules = broken.map(([rule]) => rule).filter((rule) => rule !== "R-REG-6")
  const results = await judgeEdge(edge, rules)
  expect(results.filter(({ outcome }) => outcome !== "ok")).toEqual([])
  expect(results.length).toBe(rules.length)
})

/** A broken edge answers what it answers at once; what it does not, it never does. */
const PATIENCE_MS = 1500

test.each(broken)("%s fails for an edge that %s", async (rule, _, mutations) => {
  const [result, ...more] = await judgeEdge(edge, [rule], mutations, PATIENCE_MS)
  expect(more).toEqual([])
  expect(result?.id).toBe(rule)
  expect(result?.outcome).toBe("failed")
  expect(result?.detail).toMatch(/expected .+; came .+/)
})
