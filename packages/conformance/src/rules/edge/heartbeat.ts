// How an edge keeps links alive, and ends those that are not.
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { expect, expectSame } from "../../outcomes.ts"
import { completed, nodeFrame, started, text } from "../../peer/NodePeer.ts"
import type { Rule } from "../../Rule.ts"
import type { EdgeTrial } from "../../trial/EdgeTrial.ts"
import { deathMs } from "./framing.ts"

const pongs = (count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, nonce) => nodeFrame({ case: "pong", value: { nonce } })))

export const heartbeat: ReadonlyArray<Rule<EdgeTrial>> = [
  {
    id: "R-LINK-1",
    title: "pings come every interval, and silence ends the link",
    checks: [
      {
        name: "a Ping comes within two intervals",
        run: async (trial) => {
          const peer = await trial.register()
          const intervalMs = peer.accepted?.heartbeatIntervalMs || 5000
          await peer.next("ping", "a Ping every interval", 2 * intervalMs + 500)
        }
      },
      {
        name: "a link without a frame is ended with Goodbye HEARTBEAT, and not before its time",
        extra: "slow",
        run: async (trial) => {
          const peer = await trial.register()
          peer.answersPings = false
          const silentFrom = performance.now()
          const { code } = await peer.next("goodbye", "Goodbye HEARTBEAT", deathMs(peer) + trial.patienceMs)
          expectSame("the code of the Goodbye", GoodbyeCode.HEARTBEAT, code)
          const silentMs = performance.now() - silentFrom
          const { heartbeatIntervalMs = 5000, heartbeatDeadAfter = 3 } = peer.accepted ?? {}
          const leastMs = heartbeatIntervalMs * heartbeatDeadAfter * 0.9
          expect(
            silentMs >= leastMs,
            `no end before ${leastMs} ms of silence`,
            () => `${Math.round(silentMs)} ms`
          )
          await peer.ended("the end of the link")
        }
      },
      {
        name: "any complete frame is life",
        extra: "slow",
        run: async (trial) => {
          const peer = await trial.register()
          peer.answersPings = false
          const speak = setInterval(() => peer.send({ case: "nodeStatus", value: {} }), 100)
          trial.after(() => clearInterval(speak))
          try {
            await peer.nothing(
              "a link that lives on NodeStatus frames",
              ({ body }) => (body.case === "goodbye" ? body : undefined),
              deathMs(peer)
            )
          } finally {
            clearInterval(speak)
          }
        }
      }
    ]
  },
  {
    id: "R-LINK-2",
    title: "a link is always read",
    checks: [
      {
        name: "a run whose caller reads nothing does not keep another from its end",
        run: async (trial) => {
          const peer = await trial.ready()
          const unread = await trial.admin.submitUnread({ ...trial.offer(peer), prompt: "unread" })
          trial.after(unread.hangUp)
          const slow = await peer.run(unread.id, 15_000)
          slow.send(started, text("x".repeat(100_000)), text("x".repeat(100_000)))
          const submitted = await trial.submit(peer)
          submitted.run.send(started, text("fast"), completed)
          const { phase } = await trial.ended(submitted)
          expectSame("the other run", "completed", phase)
        }
      }
    ]
  },
  {
    id: "R-LINK-3",
    title: "a node that sends too many frames is ended",
    checks: [
      {
        name: "4,000 frames at once end the link",
        run: async (trial) => {
          const peer = await trial.register()
          peer.sendBytes(pongs(4000))
          await trial.endedByRule(peer, "4,000 frames that are no events")
        }
      },
      {
        name: "1,500 frames at once are forgiven",
        run: async (trial) => {
          const peer = await trial.register()
          peer.sendBytes(pongs(1500))
          await trial.alive(peer, "a link that survives 1,500 frames at once")
        }
      }
    ]
  },
  {
    id: "R-LINK-4",
    title: "what follows a Goodbye is ignored",
    checks: [
      {
        name: "a wrong frame after a Goodbye is no protocol error",
        run: async (trial) => {
          const peer = await trial.register()
          peer.send(
            { case: "goodbye", value: { code: GoodbyeCode.SHUTDOWN, message: "conformance" } },
            { case: "registerRequest", value: trial.request() }
          )
          await peer.ended("the end of the link")
          expect(
            !peer.received.some(
              ({ body }) => body.case === "goodbye" && body.value.code === GoodbyeCode.PROTOCOL_ERROR
            ),
            "no Goodbye PROTOCOL_ERROR",
            () => "one"
          )
        }
      }
    ]
  },
  { id: "R-LINK-5", title: "a node redials for ever", notTestable: "it binds the node" }
]
