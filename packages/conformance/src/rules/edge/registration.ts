// How an edge lets nodes in, and keeps others out.
import { randomBytes } from "node:crypto"
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { type RegisterRejected, RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { expect, expectSame, RuleBroken } from "../../outcomes.ts"
import { frameOf } from "../../peer/framing.ts"
import { type NodePeer, nodeFrame, nodePayload } from "../../peer/NodePeer.ts"
import { describe, nameOf } from "../../peer/Peer.ts"
import { numberField } from "../../peer/wireBytes.ts"
import type { Rule } from "../../Rule.ts"
import { accepted, type EdgeTrial } from "../../trial/EdgeTrial.ts"

/** The rejection of a request, which the edge then closes. */
const rejected = async (
  trial: EdgeTrial,
  peer: NodePeer,
  code: RejectCode,
  retryable: boolean
): Promise<RegisterRejected> => {
  const { result } = await peer.response()
  const wanted = `RegisterRejected ${nameOf(RejectCode, code)}, retryable ${retryable}`
  if (result.case !== "rejected") throw new RuleBroken(wanted, describe(peer.received.at(-1)))
  const { value } = result
  expect(
    value.code === code && value.retryable === retryable && value.message !== "",
    wanted,
    () => `${nameOf(RejectCode, value.code)}, retryable ${value.retryable}: ${JSON.stringify(value.message)}`
  )
  await peer.ended("the end of the connection after a rejection", trial.patienceMs)
  return value
}

const send = async (trial: EdgeTrial, change: Parameters<EdgeTrial["request"]>[0]): Promise<NodePeer> => {
  const peer = await trial.connect()
  peer.send({ case: "registerRequest", value: trial.request(change) })
  return peer
}

/** The longest that the specification lets a RegisterRequest take, and what the edge may take to notice. */
const REGISTER_TIMEOUT_MS = 5000
/** The minute for which an address that guesses tokens gets no answers. */
const THROTTLE_MS = 65_000
const PROBE_MS = 5000

/** What a wrong token gets: the rejection, or nothing when the address has guessed too often. */
const guess = async (trial: EdgeTrial, token: string): Promise<RegisterRejected | undefined> => {
  const peer = await send(trial, { token })
  await peer.ended("the end of a connection with a wrong token")
  const body = peer.received.at(-1)?.body
  if (body === undefined) return undefined
  if (body.case !== "registerResponse" || body.value.result.case !== "rejected") {
    throw new RuleBroken("RegisterRejected UNKNOWN_TOKEN", describe(peer.received.at(-1)))
  }
  return body.value.result.value
}

export const registration: ReadonlyArray<Rule<EdgeTrial>> = [
  {
    id: "R-REG-1",
    title: "the first frame has to be a RegisterRequest",
    checks: [
      ["a Pong", () => nodePayload({ case: "pong", value: { nonce: 1 } })] as const,
      ["a NodeStatus", () => nodePayload({ case: "nodeStatus", value: {} })] as const,
      ["a frame without a body", () => numberField(99, 1)] as const
    ].map(([what, payload]) => ({
      name: `${what} first is MALFORMED`,
      run: async (trial: EdgeTrial) => {
        const peer = await trial.connect()
        peer.sendBytes(frameOf(payload()))
        await rejected(trial, peer, RejectCode.MALFORMED, false)
      }
    }))
  },
  {
    id: "R-REG-2",
    title: "a registration that is not complete in time is closed without an answer",
    checks: [
      {
        name: "a frame that drips in does not prolong the time",
        run: async (trial) => {
          const peer = await trial.connect()
          const frame = nodeFrame({ case: "registerRequest", value: trial.request() })
          let at = 0
          const drip = setInterval(() => {
            // All but the last byte, as slowly as it takes.
            if (at < frame.length - 1) peer.sendBytes(frame.subarray(at, ++at))
          }, 100)
          trial.after(() => clearInterval(drip))
          try {
            await peer.ended("the end of the connection", REGISTER_TIMEOUT_MS + trial.patienceMs)
          } finally {
            clearInterval(drip)
          }
          expectSame("frames in answer", 0, peer.received.length)
        }
      }
    ]
  },
  {
    id: "R-REG-3",
    title: "nothing may follow a RegisterRequest before its answer",
    checks: [
      {
        name: "a NodeStatus while the edge still probes an older link ends the newer one",
        run: async (trial) => {
          const incumbent = await trial.register()
          // The edge now waits for an answer of the incumbent before it answers the newcomer.
          incumbent.answersPings = false
          const newcomer = await send(trial, { bootId: randomBytes(16) })
          newcomer.send({ case: "nodeStatus", value: {} })
          await rejected(trial, newcomer, RejectCode.MALFORMED, false)
        }
      }
    ]
  },
  {
    id: "R-REG-4",
    title: "a second RegisterRequest ends the link",
    checks: [
      {
        name: "a second RegisterRequest is answered by Goodbye PROTOCOL_ERROR",
        run: async (trial) => {
          const peer = await trial.register()
          peer.send({ case: "registerRequest", value: trial.request() })
          await trial.endedByRule(peer, "a second RegisterRequest")
        }
      }
    ]
  },
  {
    id: "R-REG-5",
    title: "another major version is refused, a newer minor is not",
    checks: [
      {
        name: "version 2.0 is UNSUPPORTED_VERSION, with both versions in the message",
        run: async (trial) => {
          const peer = await send(trial, { protocolVersion: { major: 2, minor: 0 } })
          const { message } = await rejected(trial, peer, RejectCode.UNSUPPORTED_VERSION, false)
          expect(
            message.includes("2.0") && message.includes("1."),
            "both versions in the message",
            () => message
          )
        }
      },
      {
        name: "version 1.99 is accepted, with the smaller minor in force",
        run: async (trial) => {
          const peer = await trial.register({ protocolVersion: { major: 1, minor: 99 } })
          const { major, minor } = peer.accepted?.protocolVersion ?? { major: 0, minor: 0 }
          expect(major === 1 && minor < 99, "the edge's own 1.x in force", () => `${major}.${minor}`)
        }
      }
    ]
  },
  {
    id: "R-REG-6",
    title: "a wrong token gets the same refusal whatever is wrong, ten times a minute",
    checks: [
      {
        name: "wrong tokens are UNKNOWN_TOKEN, then not answered, and the right one is taken all the same",
        run: async (trial) => {
          const secret = trial.edge.token
          const end = performance.now() + THROTTLE_MS
          let first = await guess(trial, "")
          // An earlier run of this kit may have used up the minute's answers.
          while (first === undefined && performance.now() < end) {
            await new Promise((resolve) => setTimeout(resolve, 1000))
            first = await guess(trial, "")
          }
          expect(first !== undefined, "an answer to the first wrong token of a minute", () => "none")
          const answers = [first]
          let silent = 0
          for (const token of [`${secret}x`, secret.slice(1), "\u0000", "é".repeat(40)].concat(
            Array.from({ length: 12 }, () => randomBytes(24).toString("base64url"))
          )) {
            const answer = await guess(trial, token)
            if (answer === undefined) silent += 1
            else answers.push(answer)
          }
          for (const { code, message, retryable } of answers) {
            expect(
              code === RejectCode.UNKNOWN_TOKEN && !retryable,
              "UNKNOWN_TOKEN, not retryable",
              () => `${code}`
            )
            expectSame("the message", first.message, message)
            expect(!message.includes(secret), "a message without a token", () => "one with it")
          }
          expect(
            silent > 0,
            "no answer after ten wrong tokens in a minute",
            () => `${answers.length} answers`
          )
          await trial.register()
        }
      }
    ]
  },
  {
    id: "R-REG-7",
    title: "a boot id that is not 16 bytes is refused",
    checks: [0, 15, 17].map((length) => ({
      name: `${length} bytes are MALFORMED`,
      run: async (trial: EdgeTrial) => {
        const peer = await send(trial, { bootId: randomBytes(length) })
        await rejected(trial, peer, RejectCode.MALFORMED, false)
      }
    }))
  },
  {
    id: "R-REG-8",
    title: "one process uses a token",
    checks: [
      {
        name: "a link with the same boot id replaces the older one",
        run: async (trial) => {
          const older = await trial.register()
          const newer = await trial.register()
          const { code } = await older.next("goodbye", "Goodbye REPLACED on the older link")
          expectSame("the code of the Goodbye", GoodbyeCode.REPLACED, code)
          await older.ended("the end of the older link")
          const [before, after] = [older, newer].map((peer) => peer.accepted?.linkEpoch ?? 0n)
          expect(after! > before!, "a larger link_epoch on the newer link", () => `${before}, then ${after}`)
        }
      },
      {
        name: "another process is ALREADY_CONNECTED while the older link answers",
        run: async (trial) => {
          const incumbent = await trial.register()
          const newcomer = await send(trial, { bootId: randomBytes(16) })
          const { message } = await rejected(trial, newcomer, RejectCode.ALREADY_CONNECTED, true)
          // Behind a proxy it is another address than this end knows.
          expect(/:\d{1,5}\b/.test(message), "the older link's address in the message", () => message)
          await trial.alive(incumbent, "an older link that notices nothing")
          expect(
            !incumbent.received.some(({ body }) => body.case === "goodbye"),
            "an older link that notices nothing",
            () => describe(incumbent.received.at(-1))
          )
        }
      },
      {
        name: "another process takes over when the older link does not answer",
        run: async (trial) => {
          const incumbent = await trial.register()
          incumbent.answersPings = false
          const newcomer = await send(trial, { bootId: randomBytes(16) })
          const { code } = await incumbent.next("goodbye", "Goodbye TAKEN_OVER", PROBE_MS + trial.patienceMs)
          expectSame("the code of the Goodbye", GoodbyeCode.TAKEN_OVER, code)
          accepted(newcomer, await newcomer.response())
          await incumbent.ended("the end of the older link")
        }
      }
    ]
  },
  {
    id: "R-REG-9",
    title: "who a node is follows from its token alone",
    checks: [
      {
        name: "names in the request change nothing",
        run: async (trial) => {
          const plain = await trial.register()
          const named = await trial.register({ agentName: "another-node", agentVersion: "admin" })
          expectSame("the node_id", plain.accepted?.nodeId ?? "", named.accepted?.nodeId ?? "")
          expectSame("the alias", plain.accepted?.alias ?? "", named.accepted?.alias ?? "")
        }
      }
    ]
  },
  { id: "R-REG-10", title: "a rejected node retries as told", notTestable: "it binds the node" },
  {
    id: "R-REG-11",
    title: "a draining edge answers DRAINING",
    notTestable: "the edge would have to be stopping, and nothing can be judged after that"
  },
  {
    id: "R-REG-12",
    title: "the first frame of the edge is a RegisterResponse with a result, and the only one",
    checks: [
      {
        name: "after an accepted registration",
        run: async (trial) => {
          const peer = await trial.register()
          await trial.alive(peer, "a registered link")
          const kinds = peer.received.map(({ body }) => body.case ?? "none")
          expectSame("the first frame of the edge", "registerResponse", kinds[0] ?? "none")
          expectSame("RegisterResponses", 1, kinds.filter((kind) => kind === "registerResponse").length)
        }
      }
    ]
  }
]
