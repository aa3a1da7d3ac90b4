// What an edge does with bytes: frames, their limits, and text.

import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { FailureCode } from "@iop/platform-common/gen/iop/v1/run_event_pb"
import { expect, expectSame, RuleBroken } from "../../outcomes.ts"
import { frameOf, headerOf } from "../../peer/framing.ts"
import { type NodePeer, nodePayload } from "../../peer/NodePeer.ts"
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
import { accepted, type EdgeTrial } from "../../trial/EdgeTrial.ts"

const REGISTER_LIMIT = 64 * 1024
const PONG = 3
const RUN_EVENT = 4

/** A registered link that is ended for these bytes. `goodbye`: with the reason. */
const endsLink = (name: string, bytes: () => Uint8Array, goodbye = true): Check<EdgeTrial> => ({
  name,
  run: async (trial) => {
    const peer = await trial.register()
    peer.sendBytes(bytes())
    await trial.endedByRule(peer, name, goodbye)
  }
})

/** A link that is refused as malformed for these bytes. */
const refuses = (name: string, bytes: (trial: EdgeTrial) => Uint8Array): Check<EdgeTrial> => ({
  name,
  run: async (trial) => {
    const peer = await trial.connect()
    peer.sendBytes(bytes(trial))
    const { result } = await peer.response()
    expect(
      result.case === "rejected" && result.value.code === RejectCode.MALFORMED,
      `${name}: RegisterRejected MALFORMED`,
      () => JSON.stringify(result.case)
    )
    await peer.ended(name)
  }
})

/** A link that has not registered and is closed without a word for these bytes. */
const closesSilently = (name: string, bytes: () => Uint8Array): Check<EdgeTrial> => ({
  name,
  run: async (trial) => {
    const peer = await trial.connect()
    peer.sendBytes(bytes())
    await peer.ended(name)
    expectSame(`${name}: frames in answer`, 0, peer.received.length)
  }
})

/** A registered link that survives these bytes. */
const survives = (name: string, bytes: (peer: NodePeer) => Uint8Array): Check<EdgeTrial> => ({
  name,
  run: async (trial) => {
    const peer = await trial.register()
    peer.sendBytes(bytes(peer))
    await trial.alive(peer, name)
  }
})

const registerPayload = (trial: EdgeTrial): Uint8Array =>
  nodePayload({ case: "registerRequest", value: trial.request() })

/** The payload, as long as it is told by a field that nobody knows. */
const paddedTo = (payload: Uint8Array, length: number): Buffer => {
  const empty = Buffer.concat([payload, bytesField(99, new Uint8Array())])
  // The length of the padding takes more than one byte itself: the rest is found by trying.
  for (let size = length - empty.length; size > 0; size -= 1) {
    const padded = Buffer.concat([payload, bytesField(99, Buffer.alloc(size))])
    if (padded.length <= length) return padded
  }
  throw new Error(`no padding makes ${length} bytes`)
}

const nodeLimit = (peer: NodePeer): number => peer.accepted?.limits?.maxNodeFrameBytes || 1024 * 1024

const statusOf = (adapters: ReadonlyArray<{ readonly name: string; readonly targets?: number }>) =>
  frameOf(
    nodePayload({
      case: "nodeStatus",
      value: {
        adapters: adapters.map(({ name, targets = 0 }) => ({
          name,
          targets: Array.from({ length: targets }, (_, at) => ({ name: `t${at}` }))
        }))
      }
    })
  )

export const framing: ReadonlyArray<Rule<EdgeTrial>> = [
  {
    id: "R-FRAME-1",
    title: "frames are read however they are cut",
    checks: [
      {
        name: "a RegisterRequest that comes byte by byte is taken",
        run: async (trial) => {
          const peer = await trial.connect()
          for (const byte of frameOf(registerPayload(trial))) {
            await new Promise<void>((resolve) => peer.socket.write(Buffer.from([byte]), () => resolve()))
          }
          accepted(peer, await peer.response())
          expectSame("the first frame of the edge", "registerResponse", peer.received[0]?.body.case ?? "")
        }
      },
      survives("several frames in one write are taken", () =>
        Buffer.concat(
          Array.from({ length: 50 }, (_, nonce) => frameOf(nodePayload({ case: "pong", value: { nonce } })))
        )
      )
    ]
  },
  {
    id: "R-FRAME-2",
    title: "zero length ends the link",
    checks: [
      closesSilently("zero length closes a link that has not registered", () => headerOf(0)),
      endsLink("zero length ends a registered link", () => headerOf(0), false)
    ]
  },
  {
    id: "R-FRAME-3",
    title: "a length over the limit ends the link at its fourth byte",
    checks: [
      closesSilently("65,537 bytes before the registration", () => headerOf(REGISTER_LIMIT + 1)),
      {
        name: "65,536 bytes before the registration are taken",
        run: async (trial) => {
          const peer = await trial.connect()
          peer.sendBytes(frameOf(paddedTo(registerPayload(trial), REGISTER_LIMIT)))
          accepted(peer, await peer.response())
        }
      },
      {
        name: "one byte more than max_node_frame_bytes ends a registered link",
        run: async (trial) => {
          const peer = await trial.register()
          peer.sendBytes(headerOf(nodeLimit(peer) + 1))
          await peer.ended("the end of the link at the fourth byte")
        }
      },
      survives("a frame of max_node_frame_bytes is taken", (peer) =>
        frameOf(paddedTo(nodePayload({ case: "pong", value: { nonce: 1 } }), nodeLimit(peer)))
      )
    ]
  },
  {
    id: "R-FRAME-4",
    title: "nothing of an unfinished frame counts",
    checks: [
      {
        name: "a RegisterRequest without its last byte is not answered",
        run: async (trial) => {
          const peer = await trial.connect()
          peer.sendBytes(frameOf(registerPayload(trial)).subarray(0, -1))
          peer.close()
          await peer.ended("the end of the connection")
          expectSame("frames in answer", 0, peer.received.length)
        }
      },
      {
        name: "a registered link that closes within a frame has ended",
        run: async (trial) => {
          const peer = await trial.register()
          peer.sendBytes(headerOf(100))
          peer.close()
          await peer.ended("the end of the link")
        }
      }
    ]
  },
  {
    id: "R-FRAME-5",
    title: "malformed messages end the link",
    checks: [
      endsLink("a body that goes beyond its frame", () => frameOf(cutOff(PONG))),
      endsLink("a known field with another wire type", () => frameOf(wrongWireType(PONG))),
      endsLink("a number of more than ten bytes", () => frameOf(endlessNumber(PONG))),
      endsLink("a field with the number 0", () => frameOf(fieldZero)),
      refuses("a malformed first frame is MALFORMED", () => frameOf(cutOff(1)))
    ]
  },
  {
    id: "R-FRAME-6",
    title: "more than 100 levels end the link",
    checks: [
      endsLink("101 levels end the link", () => frameOf(nestedGroups(100))),
      survives("100 levels are taken", () => frameOf(nestedGroups(99)))
    ]
  },
  {
    id: "R-FRAME-7",
    title: "too many elements end the link",
    checks: [
      endsLink("257 adapters", () => statusOf(Array.from({ length: 257 }, (_, at) => ({ name: `a${at}` })))),
      endsLink("4,097 targets of an adapter", () => statusOf([{ name: "a", targets: 4097 }])),
      endsLink("262,145 fields in a frame", () => frameOf(manyFields(262_145))),
      survives("256 adapters are taken", () =>
        statusOf(Array.from({ length: 256 }, (_, at) => ({ name: `a${at}` })))
      )
    ]
  },
  {
    id: "R-FRAME-8",
    title: "bodies of the other direction end the link",
    checks: [
      endsLink("a Ping from a node", () => frameOf(bytesField(17, numberField(1, 1)))),
      endsLink("body 31, which no version has yet", () => frameOf(bytesField(31, new Uint8Array()))),
      refuses("a Ping as the first frame", () => frameOf(bytesField(17, numberField(1, 1))))
    ]
  },
  {
    id: "R-FRAME-9",
    title: "unknown bodies are ignored",
    checks: [
      survives("a body that no version has yet", () => frameOf(bytesField(15, numberField(1, 1)))),
      survives("a frame without a known body", () => frameOf(numberField(99, 1)))
    ]
  },
  {
    id: "R-FRAME-10",
    title: "unknown fields are ignored",
    checks: [
      {
        name: "unknown fields in a RegisterRequest",
        run: async (trial) => {
          const peer = await trial.connect()
          const request = Buffer.from(registerPayload(trial))
          // A message that comes twice is merged: the second holds nothing but what is unknown.
          peer.sendBytes(
            frameOf(
              Buffer.concat([request, bytesField(1, bytesField(99, Buffer.from("new"))), numberField(98, 1)])
            )
          )
          accepted(peer, await peer.response())
        }
      },
      survives("unknown fields in a Pong", () =>
        frameOf(bytesField(PONG, Buffer.concat([numberField(1, 1), bytesField(99, Buffer.from("new"))])))
      )
    ]
  },
  {
    id: "R-FRAME-11",
    title: "an unfinished frame is not life",
    checks: [
      {
        name: "a link that only drips bytes of a frame is ended by the heartbeat",
        extra: "slow",
        run: async (trial) => dripsToDeath(trial)
      }
    ]
  },
  {
    id: "R-TEXT-1",
    title: "invalid UTF-8 ends the link",
    checks: [
      endsLink("a broken text in an event", () =>
        frameOf(
          bytesField(
            RUN_EVENT,
            Buffer.concat([numberField(1, 1), numberField(2, 1), bytesField(4, bytesField(2, brokenText))])
          )
        )
      ),
      endsLink("a broken text in a NodeStatus", () => frameOf(bytesField(2, bytesField(1, brokenText)))),
      refuses("a broken text in a RegisterRequest is MALFORMED", (trial) =>
        frameOf(Buffer.concat([registerPayload(trial), bytesField(1, bytesField(4, brokenText))]))
      )
    ]
  },
  {
    id: "R-TEXT-2",
    title: "lone surrogates are replaced by U+FFFD",
    checks: [
      {
        name: "a lone surrogate of a caller reaches the node as U+FFFD",
        run: async (trial) => {
          const peer = await trial.ready()
          const { run } = await trial.submit(peer, { prompt: "a\ud800b" })
          const kind = run.request.input?.kind
          const prompt = kind?.case === "prompt" ? kind.value.text : ""
          expectSame("the prompt", "a\ufffdb", prompt)
        }
      }
    ]
  },
  {
    id: "R-TEXT-3",
    title: "long text for a person is cut",
    checks: [
      {
        name: "a message of 10,000 characters is shown with at most 4,096",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send({
            case: "failed",
            value: { code: FailureCode.INVALID_INPUT, message: "x".repeat(10_000) }
          })
          const { failure } = await trial.ended(submitted)
          const length = failure?.message.length ?? 0
          expect(
            length > 0 && length <= 4200,
            "a message of some 4,096 characters",
            () => `${length} characters`
          )
        }
      }
    ]
  }
]

/** How long a link may be silent before it is ended, in milliseconds, with a second for the edge to notice. */
export const deathMs = (peer: NodePeer): number => {
  const { heartbeatIntervalMs = 0, heartbeatDeadAfter = 0 } = peer.accepted ?? {}
  return (heartbeatIntervalMs || 5000) * ((heartbeatDeadAfter || 3) + 1)
}

const dripsToDeath = async (trial: EdgeTrial): Promise<void> => {
  const peer = await trial.register()
  peer.answersPings = false
  const boundMs = deathMs(peer) + trial.patienceMs
  peer.sendBytes(headerOf(60_000))
  const drip = setInterval(() => peer.sendBytes(Buffer.from([0])), 50)
  trial.after(() => clearInterval(drip))
  const what = `the end of a link without a complete frame, within ${boundMs} ms`
  try {
    await peer.ended(what, boundMs)
  } finally {
    clearInterval(drip)
  }
  const goodbye = peer.received.find(({ body }) => body.case === "goodbye")?.body
  if (goodbye?.case === "goodbye" && goodbye.value.code !== GOODBYE_HEARTBEAT) {
    throw new RuleBroken(`${what}, with Goodbye HEARTBEAT`, `Goodbye with code ${goodbye.value.code}`)
  }
}

const GOODBYE_HEARTBEAT = 4
