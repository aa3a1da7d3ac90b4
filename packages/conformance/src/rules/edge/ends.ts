// How an edge cancels, drains and takes leave.
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { expect, expectSame } from "../../outcomes.ts"
import { completed, started, text } from "../../peer/NodePeer.ts"
import type { Rule } from "../../Rule.ts"
import type { EdgeTrial } from "../../trial/EdgeTrial.ts"

/** At the edge a cancelled run is over after this, whatever its node does, in milliseconds. */
const CANCEL_BOUND_MS = 5000

export const cancel: ReadonlyArray<Rule<EdgeTrial>> = [
  {
    id: "R-CANCEL-1",
    title: "a cancelled run is over, whether or not its node answers",
    checks: [
      {
        name: "a RunCancel is sent, and the answer ends the run",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started)
          await trial.admin.cancel(submitted.id)
          await submitted.run.cancelled()
          submitted.run.send({ case: "cancelled", value: { reason: "as asked" } })
          expectSame("the run", "cancelled", (await trial.ended(submitted)).phase)
          await submitted.run.acknowledged(2)
        }
      },
      {
        name: "without an answer it is over after five seconds",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started)
          await trial.admin.cancel(submitted.id)
          await submitted.run.cancelled()
          const { phase } = await trial.ended(submitted, CANCEL_BOUND_MS + trial.patienceMs)
          expectSame("the run", "cancelled", phase)
        }
      }
    ]
  },
  {
    id: "R-CANCEL-2",
    title: "one RunCancel per run",
    checks: [
      {
        name: "cancelling twice sends one RunCancel",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started)
          await trial.admin.cancel(submitted.id)
          await submitted.run.cancelled()
          await trial.admin.cancel(submitted.id)
          await trial.alive(peer, "a link with a cancelled run")
          expectSame("RunCancels for the run", 1, submitted.run.cancels)
        }
      }
    ]
  }
]

export const drain: ReadonlyArray<Rule<EdgeTrial>> = [
  {
    id: "R-DRAIN-1",
    title: "a draining node gets no run",
    checks: [
      {
        name: "a status with draining stops new runs, those in flight go on",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started)
          const { adapter, target } = trial.offer(peer)
          peer.status({ [adapter]: [target] }, { draining: true })
          await trial.alive(peer, "the link of a draining node")
          const chosen = await trial.admin.chosen(adapter, target)
          expect(
            chosen !== peer.accepted?.alias,
            "no run for a draining node",
            () => `runs that go to ${chosen}`
          )
          submitted.run.send(text("last"), completed)
          expectSame("the run in flight", "completed", (await trial.ended(submitted)).phase)
        }
      },
      {
        name: "a node that is drained gets a Drain and no run after it",
        run: async (trial) => {
          const peer = await trial.ready()
          const alias = peer.accepted?.alias ?? ""
          const { adapter, target } = trial.offer(peer)
          trial.after(() => trial.admin.uncordon(alias))
          await trial.admin.drain(alias)
          const { timeoutMs } = await peer.next("drain", "a Drain")
          expect(timeoutMs > 0, "a Drain with a time", () => `${timeoutMs} ms`)
          const chosen = await trial.admin.chosen(adapter, target)
          expect(chosen !== alias, "no run for a drained node", () => `runs that go to ${chosen}`)
        }
      }
    ]
  },
  {
    id: "R-BYE-1",
    title: "after Goodbye SHUTDOWN the node's runs are over at once",
    checks: [
      {
        name: "a run is not kept for a node that said it stops",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started, text("cut"))
          peer.send({ case: "goodbye", value: { code: GoodbyeCode.SHUTDOWN, message: "conformance" } })
          const { failure, phase } = await trial.ended(submitted, trial.patienceMs)
          expectSame("the run's failure", "node_lost", failure?.code ?? phase)
          await peer.ended("the end of the link")
        }
      }
    ]
  }
]
