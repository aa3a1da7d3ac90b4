// Windows and resumption, from the node's side.
import { expect, expectSame } from "../../outcomes.ts"
import type { EdgePeer, EdgeRun } from "../../peer/EdgePeer.ts"
import type { Rule } from "../../Rule.ts"
import { type NodeTrial, RUN_WINDOW_BYTES } from "../../trial/NodeTrial.ts"

/** A flood without acknowledgements, when the node has stopped sending it: pings are answered, and no event came between. */
const blocked = async (trial: NodeTrial, peer: EdgePeer): Promise<EdgeRun> => {
  const run = trial.run(peer, "flood", { acknowledges: false })
  await run.until("events until the window is full", () =>
    run.unackedBytes > RUN_WINDOW_BYTES / 2 || run.events.length > 1000 ? true : undefined
  )
  await settled(peer, run)
  return run
}

/** Waits until the node has sent what it may: two Pongs in a row without an event between them. */
const settled = async (peer: EdgePeer, run: EdgeRun): Promise<void> => {
  for (let before = -1; before !== run.lastSeq; ) {
    before = run.lastSeq
    await peer.pong("a Pong while a run is blocked")
    await peer.pong("a Pong while a run is blocked")
  }
}

const withinWindow = (run: EdgeRun): void => {
  const unacked = run.events.filter(({ seq }) => seq > run.ackedSeq)
  expect(
    run.unackedBytes <= RUN_WINDOW_BYTES || unacked.length === 1,
    `at most ${RUN_WINDOW_BYTES} unacknowledged bytes, or a single event`,
    () => `${run.unackedBytes} in ${unacked.length} events`
  )
}

export const flow: ReadonlyArray<Rule<NodeTrial>> = [
  {
    id: "R-FLOW-1",
    title: "unacknowledged bytes stay within the window",
    checks: [
      {
        name: "a flood stops at the window and goes on with acknowledgements, to its end",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = await blocked(trial, peer)
          withinWindow(run)
          for (let round = 0; round < 3; round += 1) {
            const before = run.lastSeq
            run.ack(before)
            await run.until("events after an acknowledgement", () =>
              run.lastSeq > before ? true : undefined
            )
            await settled(peer, run)
            withinWindow(run)
          }
          run.acknowledges = true
          run.ack(run.lastSeq)
          await run.completed()
        }
      },
      {
        name: "a part of the window makes room for as much",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = await blocked(trial, peer)
          const before = run.lastSeq
          run.ack(Math.floor(before / 2))
          await run.until("events after an acknowledgement", () => (run.lastSeq > before ? true : undefined))
          await settled(peer, run)
          withinWindow(run)
        }
      }
    ]
  },
  {
    id: "R-FLOW-2",
    title: "a full window stops that run alone",
    checks: [
      {
        name: "another run ends while one is blocked",
        run: async (trial) => {
          const { peer } = await trial.link()
          const slow = await blocked(trial, peer)
          const before = slow.lastSeq
          await trial.run(peer, "echo").completed()
          await trial.run(peer, "count").completed()
          expectSame("the last event of the blocked run", before, slow.lastSeq)
        }
      }
    ]
  },
  {
    id: "R-FLOW-3",
    title: "events are kept until they are acknowledged",
    checks: [
      {
        name: "after a reconnect they come again, with their old numbers and contents",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = await blocked(trial, peer)
          const before = run.events.map(({ event, seq }) => ({ seq, event }))
          peer.destroy()
          const acked = Math.floor(before.length / 2)
          run.ackedSeq = acked
          await resume(trial, run, acked)
          run.acknowledges = true
          await run.completed()
          const again = run.repeated.filter(({ seq }) => seq <= before.length)
          expectSame("repeated events", before.length - acked, again.length)
          for (const [at, { event, seq }] of again.entries()) {
            expectSame("the seq", acked + 1 + at, seq)
            expect(
              JSON.stringify(event) === JSON.stringify(before[seq - 1]?.event),
              `event ${seq} as it was`,
              () => "another one"
            )
          }
        }
      }
    ]
  },
  {
    id: "R-FLOW-4",
    title: "held runs are listed, and the answer is obeyed",
    checks: [
      {
        name: "a run is listed with its numbers and goes on under its new handle",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = await blocked(trial, peer)
          const acked = 3
          run.ack(acked)
          await settled(peer, run)
          const { lastSeq } = run
          peer.destroy()
          const claim = await resume(trial, run, acked)
          expectSame("first_unacked_seq", acked + 1, claim.firstUnackedSeq)
          expect(claim.lastSeq >= lastSeq, `last_seq of at least ${lastSeq}`, () => String(claim.lastSeq))
          expectSame("the attempt", run.attempt, claim.attempt)
          run.acknowledges = true
          await run.completed()
          expectSame("events of other handles", 0, run.peer.strays.length)
        }
      },
      {
        name: "a run is listed until its terminal event is acknowledged",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "echo", { acknowledges: false })
          await run.completed()
          peer.destroy()
          const claim = await resume(trial, run, run.lastSeq)
          expectSame("last_seq", run.lastSeq, claim.lastSeq)
          await run.peer.pong("a Pong on the next link")
          run.peer.destroy()
          const { request } = await trial.relink()
          const held = request.heldRuns.map(({ runId }) => runId)
          expect(!held.includes(run.runId), "no run whose terminal event is acknowledged", () =>
            held.join(", ")
          )
        }
      },
      ...(["cancel", "no entry"] as const).map((answer) => ({
        name: `a run with ${answer} in the answer sends nothing more`,
        run: async (trial: NodeTrial) => {
          const { peer } = await trial.link()
          const run = await blocked(trial, peer)
          peer.destroy()
          const next = await trial.relink((held) => ({
            heldRuns:
              answer === "no entry"
                ? []
                : held.map(({ attempt, runId }) => ({
                    runId,
                    attempt,
                    decision: { case: "cancel" as const, value: { reason: "conformance" } }
                  }))
          }))
          await next.peer.pong("a Pong on the next link")
          await trial.run(next.peer, "echo").completed()
          expectSame("events of the run that is not wanted", 0, next.peer.strays.length)
          next.peer.destroy()
          const { request } = await trial.relink()
          const held = request.heldRuns.map(({ runId }) => runId)
          expect(!held.includes(run.runId), "no run that is not wanted among the held ones", () =>
            held.join(", ")
          )
        }
      }))
    ]
  },
  {
    id: "R-FLOW-5",
    title: "an acknowledgement of what was not sent ends the link, one of an unknown handle is ignored",
    checks: [
      {
        name: "an event that was not sent",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = await blocked(trial, peer)
          run.ack(run.lastSeq + 1_000_000)
          await peer.ended("the end of the link after an acknowledgement of what was not sent")
        }
      },
      {
        name: "unknown handles are ignored",
        run: async (trial) => {
          const { peer } = await trial.link()
          peer.send({ case: "runAck", value: { handle: 0xffff_fff0, seq: 5 } })
          await peer.pong("a Pong after an acknowledgement of an unknown handle")
          const run = trial.run(peer, "echo")
          await run.completed()
          // The node has forgotten it by now.
          run.ack(run.lastSeq)
          await peer.pong("a Pong after an acknowledgement of a run that is over")
        }
      }
    ]
  }
]

/** Lets the run go on over the node's next link, after this event. */
const resume = async (trial: NodeTrial, run: EdgeRun, afterSeq: number) => {
  const { request } = await trial.relink((held, peer) => {
    const found = held.find(({ runId }) => runId === run.runId)
    if (found === undefined) return {}
    const { attempt, runId } = found
    const decision = { case: "resume", value: { afterSeq, handle: peer.adopt(run) } } as const
    return { heldRuns: [{ runId, attempt, decision }] }
  })
  const claim = request.heldRuns.find(({ runId }) => runId === run.runId)
  expect(claim !== undefined, `run ${run.runId} among the held runs`, () =>
    request.heldRuns.length === 0 ? "none" : request.heldRuns.map(({ runId }) => runId).join(", ")
  )
  return claim
}
