// How a node stops runs, drains and takes leave.
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { FailureCode } from "@iop/platform-common/gen/iop/v1/run_event_pb"
import { expect, expectSame } from "../../outcomes.ts"
import type { EdgePeer } from "../../peer/EdgePeer.ts"
import { nameOf } from "../../peer/Peer.ts"
import type { Rule } from "../../Rule.ts"
import type { NodeTrial } from "../../trial/NodeTrial.ts"
import { lastOf, needsCommand } from "./registration.ts"

/** A terminal event has to come at once; the edge waits no longer than this, in milliseconds. */
const CANCEL_MS = 5000
const LONG_MS = 20_000
const SHORT_MS = 500

/** Waits for Goodbye SHUTDOWN as the last frame. */
const goodbye = async (peer: EdgePeer, boundMs: number): Promise<void> => {
  const { code } = await peer.next("goodbye", "Goodbye SHUTDOWN", boundMs)
  expectSame("the code of the Goodbye", nameOf(GoodbyeCode, GoodbyeCode.SHUTDOWN), nameOf(GoodbyeCode, code))
  await peer.ended("the end of the link after a Goodbye")
}

export const cancel: ReadonlyArray<Rule<NodeTrial>> = [
  {
    id: "R-CANCEL-1",
    title: "a RunCancel is answered by the terminal event",
    checks: [
      {
        name: "a run that says nothing is cancelled",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "never")
          await peer.pong("a Pong while a run says nothing")
          run.cancel()
          const { event } = await run.terminal(CANCEL_MS)
          expectSame("the terminal event", "cancelled", event.case ?? "")
        }
      },
      {
        name: "a run that waits for its window is cancelled too",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "flood", { acknowledges: false })
          await run.until("a first event", () => run.events[0])
          run.cancel()
          // As an edge does: it acknowledges what still comes.
          run.acknowledges = true
          run.ack(run.lastSeq)
          await run.terminal(CANCEL_MS)
        }
      }
    ]
  },
  {
    id: "R-CANCEL-2",
    title: "a RunCancel of an unknown handle, or a second one, changes nothing",
    checks: [
      {
        name: "both are ignored",
        run: async (trial) => {
          const { peer } = await trial.link()
          peer.send({ case: "runCancel", value: { handle: 0xffff_fff0, code: 1, reason: "unknown" } })
          const run = trial.run(peer, "never")
          run.cancel()
          run.cancel()
          await run.terminal(CANCEL_MS)
          run.cancel()
          await peer.pong("a Pong after cancels of nothing")
          run.checkGrammar()
          expectSame("events of other handles", 0, peer.strays.length)
          await trial.run(peer, "echo").completed()
        }
      }
    ]
  }
]

export const drain: ReadonlyArray<Rule<NodeTrial>> = [
  {
    id: "R-DRAIN-1",
    title: "a drained node finishes its runs, takes none, says Goodbye and comes back",
    checks: [
      {
        name: "a run in flight ends, a new one is rejected, the node redials",
        run: async (trial) => {
          const { peer } = await trial.link()
          const running = trial.run(peer, "flood", { acknowledges: false })
          await running.until("a first event", () => running.events[0])
          peer.send({ case: "drain", value: { timeoutMs: LONG_MS, reason: "conformance" } })
          await peer.pong("a Pong after a Drain")
          const late = trial.run(peer, "echo")
          const { event } = await late.terminal()
          expect(
            event.case === "failed" && event.value.code === FailureCode.REJECTED,
            "failed REJECTED for a run after a Drain",
            () => String(event.case)
          )
          running.acknowledges = true
          running.ack(running.lastSeq)
          await running.completed(LONG_MS)
          await goodbye(peer, trial.patienceMs)
          await (await trial.redial()).request()
        }
      },
      {
        name: "what has not ended by timeout_ms is failed retryably",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "never")
          await peer.pong("a Pong while a run says nothing")
          peer.send({ case: "drain", value: { timeoutMs: SHORT_MS, reason: "conformance" } })
          const { event } = await run.terminal(SHORT_MS + trial.patienceMs)
          expect(
            event.case === "failed" && event.value.code === FailureCode.INTERNAL && event.value.retryable,
            "failed INTERNAL, retryable",
            () =>
              event.case === "failed"
                ? `failed ${nameOf(FailureCode, event.value.code)}, retryable ${event.value.retryable}`
                : String(event.case)
          )
          await goodbye(peer, trial.patienceMs)
        }
      },
      {
        name: "a node that is stopped says that it drains, finishes and says Goodbye",
        run: async (trial) => {
          needsCommand(trial)
          const { peer } = await trial.link({}, { fresh: true })
          const run = trial.run(peer, "flood", { acknowledges: false })
          await run.until("a first event", () => run.events[0])
          trial.host.process?.kill("SIGTERM")
          await peer.status("a NodeStatus with draining", ({ draining }) => draining)
          const late = trial.run(peer, "echo")
          const { event } = await late.terminal()
          expect(
            event.case === "failed" && event.value.code === FailureCode.REJECTED,
            "failed REJECTED for a run while it stops",
            () => String(event.case)
          )
          run.acknowledges = true
          run.ack(run.lastSeq)
          await run.completed(LONG_MS)
          await goodbye(peer, trial.patienceMs)
        }
      }
    ]
  },
  {
    id: "R-BYE-1",
    title: "Goodbye SHUTDOWN comes when the node's runs are over",
    checks: [
      {
        name: "each run has its terminal event before the Goodbye",
        run: async (trial) => {
          const { peer } = await trial.link()
          const runs = [trial.run(peer, "echo"), trial.run(peer, "never"), trial.run(peer, "count")]
          await peer.pong("a Pong while runs play")
          peer.send({ case: "drain", value: { timeoutMs: SHORT_MS, reason: "conformance" } })
          await goodbye(peer, SHORT_MS + trial.patienceMs)
          for (const run of runs) {
            const last = run.events.at(-1)?.event.case ?? "none"
            expect(
              ["completed", "failed", "cancelled"].includes(last),
              `a terminal event of ${run.runId} before the Goodbye`,
              () => `${last}; ${lastOf(peer)}`
            )
          }
        }
      }
    ]
  }
]
