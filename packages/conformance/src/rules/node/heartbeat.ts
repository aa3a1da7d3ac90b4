// How a node answers, listens, and takes leave.
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { expect, expectSame } from "../../outcomes.ts"
import type { Rule } from "../../Rule.ts"
import type { NodeTrial } from "../../trial/NodeTrial.ts"
import { BEAT_DEATH_MS, beat, keepAlive } from "./framing.ts"
import { lastOf, redials } from "./registration.ts"

/** Frames a second that are no events. */
const MAX_FRAMES_PER_SECOND = 200

export const heartbeat: ReadonlyArray<Rule<NodeTrial>> = [
  {
    id: "R-LINK-1",
    title: "a Ping is answered at once, and a silent edge is given up",
    checks: [
      {
        name: "each Pong has the nonce of its Ping",
        run: async (trial) => {
          const { peer } = await trial.link()
          for (const nonce of [1, 0, 0xffff_ffff, 42]) {
            peer.send({ case: "ping", value: { nonce } })
            const pong = await peer.next("pong", `a Pong with nonce ${nonce}`)
            expectSame("the nonce", nonce, pong.nonce)
          }
        }
      },
      {
        name: "a silent edge is given up after heartbeat_dead_after intervals, and dialled again",
        run: async (trial) => {
          const { peer } = await trial.link(beat)
          const silentFrom = performance.now()
          await peer.ended("the end of a link whose edge is silent", BEAT_DEATH_MS + trial.patienceMs)
          const silentMs = performance.now() - silentFrom
          // The last frame that the node had was sent before its status came.
          expect(silentMs >= BEAT_DEATH_MS / 2, `no end before ${BEAT_DEATH_MS} ms`, () => `${silentMs} ms`)
          await (await trial.redial()).request()
        }
      },
      {
        name: "an edge that pings is not given up",
        run: async (trial) => {
          const link = await trial.link(beat)
          trial.after(keepAlive(link))
          await link.peer.nothing(
            "a link that lives on pings",
            ({ body }) => (body.case === "goodbye" ? body : undefined),
            2 * BEAT_DEATH_MS
          )
        }
      }
    ]
  },
  {
    id: "R-LINK-2",
    title: "a link is always read",
    checks: [
      {
        name: "a node whose run is blocked by its window still answers",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "flood", { acknowledges: false })
          await run.until("a first event", () => run.events[0])
          await peer.pong("a Pong while a run is blocked")
        }
      }
    ]
  },
  {
    id: "R-LINK-3",
    title: "a node sends few frames that are no events",
    checks: [
      {
        name: "30 runs one after the other cause no flood of statuses",
        run: async (trial) => {
          const { peer } = await trial.link()
          const from = performance.now()
          for (let count = 0; count < 30; count += 1) await trial.run(peer, "echo").completed()
          const seconds = (performance.now() - from) / 1000
          const statuses = peer.received.filter(({ body }) => body.case === "nodeStatus").length
          const most = Math.ceil(seconds * MAX_FRAMES_PER_SECOND) + 20
          expect(statuses <= most, `at most ${most} NodeStatus frames`, () => String(statuses))
        }
      }
    ]
  },
  {
    id: "R-LINK-4",
    title: "nothing follows a Goodbye",
    checks: [
      {
        name: "a RunRequest after the edge's Goodbye is not taken",
        run: async (trial) => {
          const { peer } = await trial.link()
          peer.send({ case: "goodbye", value: { code: GoodbyeCode.SHUTDOWN, message: "conformance" } })
          const run = trial.run(peer, "echo")
          await peer.ended("the end of the link after a Goodbye")
          expectSame("events of a run that came after a Goodbye", 0, run.events.length)
        }
      },
      {
        name: "a node's own Goodbye is its last frame",
        run: async (trial) => {
          const { peer } = await trial.link()
          peer.send({ case: "drain", value: { timeoutMs: 1000, reason: "conformance" } })
          await peer.ended("the end of the link after a Drain")
          expectSame("the last frame", "goodbye", peer.received.at(-1)?.body.case ?? lastOf(peer))
          expectSame("bytes of an unfinished frame after it", 0, peer.unfinishedBytes)
        }
      }
    ]
  },
  { id: "R-LINK-5", title: "a node redials for ever", checks: [redials] }
]
