// Windows and resumption, from the edge's side.
import { expect, expectSame, RuleBroken } from "../../outcomes.ts"
import { completed, type NodePeer, type NodeRun, started, text } from "../../peer/NodePeer.ts"
import type { Rule } from "../../Rule.ts"
import { type EdgeTrial, RUN_WAIT_MS, type SubmittedRun } from "../../trial/EdgeTrial.ts"
import { expectProtocolError, textOf } from "./runs.ts"

/** What the envelope, the handle and the seq add to a text, in bytes; rather too many. */
const EVENT_OVERHEAD = 64
/** How long no acknowledgement must come for the edge to count as holding back, in milliseconds. */
const QUIET_MS = 700
/** Enough for the edge's log of a run and all buffers between it and a caller that reads nothing. */
const ENOUGH_BYTES = 512 * 1024 * 1024

const window = (peer: NodePeer): number => peer.accepted?.limits?.runWindowBytes || 256 * 1024

/** The run over a new link, held from `firstUnackedSeq` to `lastSeq`. */
const comeBack = async (
  trial: EdgeTrial,
  { run }: SubmittedRun,
  firstUnackedSeq: number
): Promise<{
  readonly peer: NodePeer
  readonly decision: "resume" | "cancel" | undefined
  readonly afterSeq: number
}> => {
  const { runId, attempt } = run.request
  const peer = await trial.register({
    heldRuns: [{ runId, attempt, firstUnackedSeq, lastSeq: run.lastSeq }]
  })
  const found = peer.accepted?.heldRuns.find((held) => held.runId === runId)?.decision
  if (found?.case !== "resume") return { peer, decision: found?.case, afterSeq: 0 }
  run.peer = peer
  run.handle = found.value.handle
  return { peer, decision: "resume", afterSeq: found.value.afterSeq }
}

export const flow: ReadonlyArray<Rule<EdgeTrial>> = [
  {
    id: "R-FLOW-1",
    title: "a run that leaves its window fails alone",
    checks: [
      {
        name: "a window that is respected is acknowledged, however long the answer",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started)
          const size = Math.floor(window(peer) / 2) - EVENT_OVERHEAD
          // One at a time: each needs the acknowledgement of the one before the last.
          for (let count = 0; count < 8; count += 1) {
            submitted.run.send(text("x".repeat(size)))
            if (submitted.run.lastSeq > 2) await submitted.run.acknowledged(submitted.run.lastSeq - 1)
          }
          submitted.run.send(completed)
          expectSame("the run", "completed", (await trial.ended(submitted)).phase)
        }
      },
      {
        name: "what came is acknowledged soon, and one event larger than the window is taken",
        run: async (trial) => {
          const peer = await trial.ready()
          const limit = peer.accepted?.limits?.maxNodeFrameBytes || 1024 * 1024
          const submitted = await trial.submit(peer)
          submitted.run.send(started)
          // It may go only once the window is empty: the edge acknowledges soon what it has.
          await submitted.run.acknowledged(1)
          submitted.run.send(text("x".repeat(Math.min(window(peer) + 100, limit - EVENT_OVERHEAD))))
          await submitted.run.acknowledged(2)
          submitted.run.send(text("."))
          await submitted.run.acknowledged(3)
          submitted.run.send(completed)
          expectSame("the run", "completed", (await trial.ended(submitted)).phase)
        }
      },
      {
        name: "more than the window without an acknowledgement is a protocol error",
        run: async (trial) => {
          const peer = await trial.ready()
          const unread = await trial.admin.submitUnread({ ...trial.offer(peer), prompt: "unread" })
          trial.after(unread.hangUp)
          const run = await peer.run(unread.id, RUN_WAIT_MS)
          run.send(started)
          const size = Math.floor(window(peer) / 4) - EVENT_OVERHEAD
          await fill(run, size)
          // The edge holds back: nobody reads. Two more windows are too much in any case.
          for (let count = 0; count < 12; count += 1) run.send(text("x".repeat(size)))
          await run.cancelled()
          expectProtocolError(await trial.ended({ id: unread.id }))
          await trial.alive(peer, "a link that outlives a run which left its window")
        }
      }
    ]
  },
  {
    id: "R-FLOW-2",
    title: "a full window stops that run alone",
    notTestable: "it binds the node: the edge only sees other runs wait"
  },
  {
    id: "R-FLOW-3",
    title: "a resumption that leaves a hole fails the run",
    checks: [
      {
        name: "the answer is cancel and the run fails with protocol_error",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          // After a delta it is never run again.
          submitted.run.send(started, text("before"))
          await submitted.run.acknowledged(2)
          peer.destroy()
          submitted.run.lastSeq = 5
          const { decision } = await comeBack(trial, submitted, 4)
          expectSame("the decision for the run", "cancel", decision ?? "none")
          expectProtocolError(await trial.ended(submitted))
        }
      }
    ]
  },
  {
    id: "R-FLOW-4",
    title: "held runs are resumed, others are over",
    checks: [
      {
        name: "a run goes on over a new link, under its old numbers",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started, text("before "))
          await trial.alive(peer, "a link with a run")
          peer.destroy()
          submitted.run.lastSeq = 3
          const { decision, afterSeq, peer: next } = await comeBack(trial, submitted, 1)
          expectSame("the decision for the run", "resume", decision ?? "none")
          expect(afterSeq >= 0 && afterSeq <= 3, "an after_seq from 0 to 3", () => String(afterSeq))
          const { run } = submitted
          for (const [at, event] of [started, text("before "), text("after")].entries()) {
            if (at + 1 > afterSeq) run.sendAs(at + 1, event)
          }
          run.send(completed)
          expectSame("the run", "completed", (await trial.ended(submitted)).phase)
          expectSame("its text", "before after", await textOf(trial, submitted.id))
          await trial.alive(next, "the new link")
        }
      },
      {
        name: "a run that the edge does not know is to be stopped",
        run: async (trial) => {
          const peer = await trial.register({
            heldRuns: [{ runId: "conformance-unknown", attempt: 1, firstUnackedSeq: 1, lastSeq: 3 }]
          })
          const found = peer.accepted?.heldRuns.find(({ runId }) => runId === "conformance-unknown")
          const decision = found?.decision.case ?? "cancel"
          expectSame("the decision for a run that the edge does not know", "cancel", decision)
        }
      },
      {
        name: "a run that is not listed is lost at once",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          // After a delta it is never run again.
          submitted.run.send(started, text("before"))
          await trial.alive(peer, "a link with a run")
          peer.destroy()
          await trial.register()
          const { failure, phase } = await trial.ended(submitted, trial.patienceMs)
          expectSame("the run's failure", "node_lost", failure?.code ?? phase)
        }
      }
    ]
  },
  {
    id: "R-FLOW-5",
    title: "only events that came are acknowledged",
    checks: [
      {
        name: "every acknowledgement of a run is for a seq that was sent",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started)
          for (let count = 0; count < 5; count += 1) {
            submitted.run.send(text("x".repeat(1000)))
            const acked = await submitted.run.acknowledged(submitted.run.lastSeq)
            expectSame("the acknowledged seq", submitted.run.lastSeq, acked)
          }
          submitted.run.send(completed)
          expectSame("the run", "completed", (await trial.ended(submitted)).phase)
          const { handle, lastSeq } = submitted.run
          for (const { body } of peer.received) {
            if (body.case !== "runAck") continue
            expectSame("the handle of an acknowledgement", handle, body.value.handle)
            expect(body.value.seq <= lastSeq, `a seq of at most ${lastSeq}`, () => String(body.value.seq))
          }
        }
      }
    ]
  }
]

/** Sends as much as acknowledgements allow, until they stay away. */
const fill = async (run: NodeRun, size: number): Promise<void> => {
  const bytes = size + EVENT_OVERHEAD
  const limit = window(run.peer)
  let acked = 0
  for (let sent = 0; sent < ENOUGH_BYTES; sent += bytes) {
    while ((run.lastSeq - acked + 1) * bytes > limit) {
      try {
        acked = await run.acknowledged(acked + 1, QUIET_MS)
      } catch (error) {
        if (error instanceof RuleBroken && run.peer.over === undefined) return
        throw error
      }
    }
    run.send(text("x".repeat(size)))
  }
  throw new RuleBroken(
    "an edge that holds acknowledgements back while a caller reads nothing",
    `${ENOUGH_BYTES} bytes taken`
  )
}
