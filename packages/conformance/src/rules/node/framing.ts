// What a node does with bytes: frames, their limits, and text.
import { expect, expectSame } from "../../outcomes.ts"
import { type EdgeBody, type EdgePeer, edgePayload } from "../../peer/EdgePeer.ts"
import { frameOf, headerOf } from "../../peer/framing.ts"
import {
  brokenText,
  bytesField,
  cutOff,
  endlessNumber,
  fieldZero,
  manyFields,
  nestedGroups,
  numberField,
  wrongWireType
} from "../../peer/wireBytes.ts"
import type { Check, Rule } from "../../Rule.ts"
import { type Link, MAX_EDGE_FRAME_BYTES, type NodeTrial } from "../../trial/NodeTrial.ts"

const PING = 17
const RUN_REQUEST = 18
/** A pace at which an interval of the heartbeat passes quickly, in milliseconds. */
const BEAT_MS = 400
const DEAD_AFTER = 3

/** A node that closes the link for these bytes, after its registration. */
const closes = (name: string, bytes: (trial: NodeTrial) => Uint8Array, limit?: number): Check<NodeTrial> => ({
  name,
  run: async (trial) => {
    const { peer } = await trial.link(
      limit === undefined
        ? {}
        : { limits: { maxNodeFrameBytes: 1024 * 1024, maxEdgeFrameBytes: limit, runWindowBytes: 65_536 } }
    )
    peer.sendBytes(bytes(trial))
    await peer.ended(`${name}: the end of the link`)
  }
})

/** Something that a node may leave to its library. */
const strict = (check: Check<NodeTrial>): Check<NodeTrial> => ({ ...check, extra: "strict" })

/** A node that stays for these bytes, and has read them. */
const survives = (name: string, bytes: () => Uint8Array): Check<NodeTrial> => ({
  name,
  run: async (trial) => {
    const { peer } = await trial.link()
    peer.sendBytes(bytes())
    await peer.pong(`${name}: a node that answers the next Ping`)
  }
})

const ping = (nonce: number): EdgeBody => ({ case: "ping", value: { nonce } })

const takesPong = (peer: EdgePeer, nonce: number) =>
  peer.take(`a Pong with nonce ${nonce}`, ({ body }) =>
    body.case === "pong" && body.value.nonce === nonce ? true : undefined
  )

const paddedPing = (length: number): Buffer => {
  const body = edgePayload(ping(7))
  // Two bytes of field number, three of length.
  return Buffer.concat([body, bytesField(99, Buffer.alloc(length - body.length - 5))])
}

export const framing: ReadonlyArray<Rule<NodeTrial>> = [
  {
    id: "R-FRAME-1",
    title: "frames are read however they are cut",
    checks: [
      {
        name: "a Ping that comes byte by byte, and ten in one write",
        run: async (trial) => {
          const { peer } = await trial.link()
          for (const byte of frameOf(edgePayload(ping(4711)))) {
            await new Promise<void>((resolve) => peer.socket.write(Buffer.from([byte]), () => resolve()))
          }
          await takesPong(peer, 4711)
          peer.send(...Array.from({ length: 10 }, (_, at) => ping(100 + at)))
          for (let at = 0; at < 10; at += 1) await takesPong(peer, 100 + at)
        }
      }
    ]
  },
  {
    id: "R-FRAME-2",
    title: "zero length ends the link",
    checks: [closes("zero length closes the link", () => headerOf(0))]
  },
  {
    id: "R-FRAME-3",
    title: "a length over max_edge_frame_bytes ends the link at its fourth byte",
    checks: [
      closes("one byte more than max_edge_frame_bytes", () => headerOf(MAX_EDGE_FRAME_BYTES + 1)),
      survives("a frame of max_edge_frame_bytes is taken", () => frameOf(paddedPing(MAX_EDGE_FRAME_BYTES)))
    ]
  },
  {
    id: "R-FRAME-4",
    title: "nothing of an unfinished frame counts",
    checks: [
      {
        name: "a RunRequest without its last byte is not run, and the link has ended",
        run: async (trial) => {
          const { peer } = await trial.link()
          const request = edgePayload({
            case: "runRequest",
            value: { runId: "unfinished", attempt: 1, handle: 1, adapter: "mock", target: "echo" }
          })
          peer.sendBytes(frameOf(request).subarray(0, -1))
          peer.close()
          await peer.ended("the end of the link")
          expectSame("events of the unfinished run", 0, peer.strays.length)
          const { request: next } = await trial.relink()
          expect(
            !next.heldRuns.some(({ runId }) => runId === "unfinished"),
            "no held run of an unfinished frame",
            () => "one"
          )
        }
      }
    ]
  },
  {
    id: "R-FRAME-5",
    title: "malformed messages end the link",
    checks: [
      closes("a body that goes beyond its frame", () => frameOf(cutOff(PING))),
      strict(closes("a known field with another wire type", () => frameOf(wrongWireType(PING)))),
      closes("a number of more than ten bytes", () => frameOf(endlessNumber(PING))),
      strict(closes("a field with the number 0", () => frameOf(fieldZero)))
    ]
  },
  {
    id: "R-FRAME-6",
    title: "more than 100 levels end the link",
    checks: [
      strict(closes("101 levels", () => frameOf(nestedGroups(100)))),
      survives("100 levels are taken", () => frameOf(nestedGroups(99)))
    ]
  },
  {
    id: "R-FRAME-7",
    title: "too many elements end the link, where the node counts them",
    checks: [
      strict(closes("524,289 fields in a frame", () => frameOf(manyFields(524_289)), 4 * 1024 * 1024)),
      {
        name: "a configuration of 257 adapters",
        extra: "strict",
        run: async (trial) => {
          const { peer } = await trial.accept(await trial.dial(), {
            config: {
              revision: "many",
              adapters: Array.from({ length: 257 }, (_, at) => ({ name: `a${at}` }))
            }
          })
          await peer.ended("the end of the link after a configuration of 257 adapters")
        }
      }
    ]
  },
  {
    id: "R-FRAME-8",
    title: "bodies of the other direction end the link",
    checks: [
      closes("a Pong from the edge", () => frameOf(bytesField(3, numberField(1, 1)))),
      closes("body 15, which no version has yet", () => frameOf(bytesField(15, new Uint8Array())))
    ]
  },
  {
    id: "R-FRAME-9",
    title: "unknown bodies are ignored",
    checks: [
      survives("a body that no version has yet", () => frameOf(bytesField(31, numberField(1, 1)))),
      survives("a frame without a known body", () => frameOf(numberField(99, 1)))
    ]
  },
  {
    id: "R-FRAME-10",
    title: "unknown fields are ignored",
    checks: [
      survives("unknown fields in a Ping", () =>
        frameOf(bytesField(PING, Buffer.concat([numberField(1, 1), bytesField(99, Buffer.from("new"))])))
      )
    ]
  },
  {
    id: "R-FRAME-11",
    title: "an unfinished frame is not life",
    checks: [
      {
        name: "an edge that only drips bytes of a frame is given up",
        run: async (trial) => {
          const { peer } = await trial.link(beat)
          peer.sendBytes(headerOf(60_000))
          const drip = setInterval(() => peer.sendBytes(Buffer.from([0])), 50)
          trial.after(() => clearInterval(drip))
          await peer.ended(
            "the end of a link without a complete frame",
            BEAT_MS * DEAD_AFTER + trial.patienceMs
          )
        }
      }
    ]
  },
  {
    id: "R-TEXT-1",
    title: "invalid UTF-8 ends the link",
    checks: [
      closes("a broken run id", () => frameOf(bytesField(RUN_REQUEST, bytesField(1, brokenText)))),
      closes("a broken reason in a RunCancel", () => frameOf(bytesField(20, bytesField(3, brokenText))))
    ]
  },
  {
    id: "R-TEXT-2",
    title: "lone surrogates are replaced by U+FFFD",
    notTestable:
      "what a node's backend gives it cannot be chosen from here; all text that came was valid UTF-8"
  },
  {
    id: "R-TEXT-3",
    title: "long text for a person is cut",
    notTestable: "a node shows text to its operator, not to the edge"
  }
]

/** A fast heartbeat. */
export const beat = {
  heartbeatIntervalMs: BEAT_MS,
  heartbeatSuspectAfter: 2,
  heartbeatDeadAfter: DEAD_AFTER
} as const

/** When a node gives up an edge that is silent on a link with that heartbeat, in milliseconds. */
export const BEAT_DEATH_MS = BEAT_MS * DEAD_AFTER

/** Pings the link at that heartbeat until the returned function is called. */
export const keepAlive = ({ peer }: Link): (() => void) => {
  const timer = setInterval(() => peer.send(ping(1)), BEAT_MS / 2)
  return () => clearInterval(timer)
}
