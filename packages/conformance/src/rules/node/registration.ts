// How a node introduces itself, and what it does when it is turned away.
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { expect, expectSame, NotTestable } from "../../outcomes.ts"
import type { EdgeBody, EdgePeer } from "../../peer/EdgePeer.ts"
import { describe, nameOf } from "../../peer/Peer.ts"
import type { Check, Rule } from "../../Rule.ts"
import type { NodeTrial } from "../../trial/NodeTrial.ts"

/** The longest that a RegisterRequest may take, in milliseconds. */
const REGISTER_MS = 5000
/** How long an answer is held back to see whether the node waits for it, in milliseconds. */
const HELD_BACK_MS = 1500
/** The most that the random time before a first redial is, in milliseconds. */
const FIRST_CEILING_MS = 1000
const RETRY_AFTER_MS = 1500
/** After a rejection that is for good a node waits at least this long, and at most twice as long, in milliseconds. */
const SLOW_RETRY_MS = 30_000

const reject = (peer: EdgePeer, code: RejectCode, retryable: boolean, retryAfterMs: number): void => {
  peer.send({
    case: "registerResponse",
    value: {
      result: { case: "rejected", value: { code, message: "conformance", retryable, retryAfterMs } }
    }
  })
  peer.close()
}

/** A node that comes back after a rejection, and not before it was told to. */
const retries = (code: RejectCode): Check<NodeTrial> => ({
  name: `${nameOf(RejectCode, code)} is retried, not before retry_after_ms`,
  run: async (trial) => {
    const peer = await trial.dial()
    await peer.request()
    const from = performance.now()
    reject(peer, code, true, RETRY_AFTER_MS)
    const next = await trial.redial()
    const waitedMs = next.connectedAt - from
    expect(
      waitedMs >= RETRY_AFTER_MS - 50,
      `a redial after ${RETRY_AFTER_MS} ms`,
      () => `${Math.round(waitedMs)} ms`
    )
    await next.request()
  }
})

export const registration: ReadonlyArray<Rule<NodeTrial>> = [
  {
    id: "R-REG-1",
    title: "the first frame is a RegisterRequest",
    checks: [
      {
        name: "it is, and it says who the node is",
        run: async (trial) => {
          const request = await (await trial.dial()).request()
          expect(request.agentName !== "", "an agent_name", () => "none")
          expect(request.adapterKinds.length > 0, "adapter_kinds", () => "none")
        }
      }
    ]
  },
  {
    id: "R-REG-2",
    title: "the RegisterRequest is complete within 5 s",
    checks: [
      {
        name: "it comes in time",
        run: async (trial) => {
          const peer = await trial.dial()
          await peer.request(REGISTER_MS)
        }
      }
    ]
  },
  {
    id: "R-REG-3",
    title: "nothing follows before the RegisterResponse",
    checks: [
      {
        name: "a node waits for its answer in silence",
        run: async (trial) => {
          const peer = await trial.dial()
          await peer.request()
          await peer.nothing("nothing before the RegisterResponse", (frame) => frame, HELD_BACK_MS)
        }
      }
    ]
  },
  {
    id: "R-REG-4",
    title: "one RegisterRequest per link",
    checks: [
      {
        name: "no other follows",
        run: async (trial) => {
          const { peer } = await trial.link()
          await peer.pong("a node that answers a Ping")
          const requests = peer.received.filter(({ body }) => body.case === "registerRequest").length
          expectSame("RegisterRequests", 1, requests)
        }
      }
    ]
  },
  {
    id: "R-REG-5",
    title: "the version is 1.x",
    checks: [
      {
        name: "protocol_version has major 1",
        run: async (trial) => {
          const { protocolVersion } = await (await trial.dial()).request()
          expectSame("the major version", 1, protocolVersion?.major ?? 0)
        }
      },
      retriesSlowly(RejectCode.UNSUPPORTED_VERSION)
    ]
  },
  {
    id: "R-REG-6",
    title: "the token is the one that the node was given",
    checks: [
      {
        name: "it comes as it is",
        run: async (trial) => {
          const { token } = await (await trial.dial()).request()
          // Neither of the two is shown.
          expect(token === trial.host.node.token, "the token that the kit printed", () =>
            token === "" ? "none" : "another one"
          )
        }
      }
    ]
  },
  {
    id: "R-REG-7",
    title: "the boot id is 16 random bytes, the same for all links of a process",
    checks: [
      {
        name: "it stays over links",
        run: async (trial) => {
          const { peer, request } = await trial.link()
          expectSame("bytes of the boot_id", 16, request.bootId.length)
          expect(new Set(request.bootId).size > 4, "random bytes", () => "bytes that repeat")
          peer.destroy()
          const next = await (await trial.redial()).request()
          expect(
            Buffer.from(request.bootId).equals(next.bootId),
            "the boot_id of before",
            () => "another one"
          )
        }
      },
      {
        name: "a new process has another",
        run: async (trial) => {
          const before = await (await trial.dial()).request()
          const after = await (await trial.dial({ fresh: true })).request()
          expect(!Buffer.from(before.bootId).equals(after.bootId), "another boot_id", () => "the same")
        }
      }
    ]
  },
  {
    id: "R-REG-8",
    title: "a node whose link was taken by another process dials again",
    checks: [GoodbyeCode.TAKEN_OVER, GoodbyeCode.REPLACED].map((code) => ({
      name: `after Goodbye ${nameOf(GoodbyeCode, code)}`,
      run: async (trial: NodeTrial) => {
        const { peer } = await trial.link()
        peer.send({ case: "goodbye", value: { code, message: "conformance" } })
        peer.close()
        await peer.ended("the end of the link after a Goodbye")
        await (await trial.redial()).request()
      }
    }))
  },
  {
    id: "R-REG-9",
    title: "who a node is follows from its token alone",
    notTestable: "it binds the edge"
  },
  {
    id: "R-REG-10",
    title: "a rejected node retries as it is told",
    checks: [retries(RejectCode.ALREADY_CONNECTED), retriesSlowly(RejectCode.UNKNOWN_TOKEN)]
  },
  {
    id: "R-REG-11",
    title: "a node comes back to an edge that was draining",
    checks: [retries(RejectCode.DRAINING)]
  },
  {
    id: "R-REG-12",
    title: "another first frame than a RegisterResponse ends the link, and so does a second one",
    checks: [
      notFirst("a Ping first", { case: "ping", value: { nonce: 1 } }),
      notFirst("a RunRequest first", {
        case: "runRequest",
        value: { runId: "early", attempt: 1, handle: 1 }
      }),
      notFirst("a RegisterResponse without a result", { case: "registerResponse", value: {} }),
      {
        name: "a second RegisterResponse",
        run: async (trial) => {
          const { peer } = await trial.link()
          peer.send({ case: "registerResponse", value: { result: { case: "accepted", value: {} } } })
          await peer.ended("the end of the link after a second RegisterResponse")
        }
      }
    ]
  }
]

/** A node that closes for this body in place of the answer, and dials again. */
function notFirst(name: string, body: EdgeBody): Check<NodeTrial> {
  return {
    name,
    run: async (trial) => {
      const peer = await trial.dial()
      await peer.request()
      peer.send(body)
      await peer.ended(`${name}: the end of the link`)
      await (await trial.redial()).request()
    }
  }
}

/** A node that asks again after a rejection for good, but slowly. */
function retriesSlowly(code: RejectCode): Check<NodeTrial> {
  return {
    name: `${nameOf(RejectCode, code)} is retried slowly`,
    extra: "slow",
    run: async (trial) => {
      const peer = await trial.dial()
      await peer.request()
      const from = performance.now()
      reject(peer, code, false, 0)
      const next = await trial.redial(2 * SLOW_RETRY_MS + trial.patienceMs)
      const waitedMs = next.connectedAt - from
      expect(
        waitedMs >= SLOW_RETRY_MS,
        `a redial after ${SLOW_RETRY_MS} ms`,
        () => `${Math.round(waitedMs)} ms`
      )
    }
  }
}

/** Redials for ever, after random times. */
export const redials: Check<NodeTrial> = {
  name: "a node whose link is cut dials again, and once more when it gets no answer",
  run: async (trial) => {
    const { peer } = await trial.link({}, trial.host.restarts ? { fresh: true } : {})
    const cutAt = performance.now()
    peer.socket.resetAndDestroy()
    const second = await trial.redial()
    // Only a new process is known to be at the beginning of its backoff.
    if (trial.host.restarts) {
      const waitedMs = second.connectedAt - cutAt
      expect(
        waitedMs <= FIRST_CEILING_MS + 500,
        `a redial within ${FIRST_CEILING_MS} ms`,
        () => `${waitedMs} ms`
      )
    }
    await second.request()
    second.destroy()
    await (await trial.redial()).request()
  }
}

/** What a frame is, for messages. */
export const lastOf = (peer: EdgePeer): string => describe(peer.received.at(-1))

/** Why a check that needs the node's process cannot be made. */
export const needsCommand = (trial: NodeTrial): void => {
  if (!trial.host.restarts) throw new NotTestable("it takes a signal to the node: give its command after --")
}
