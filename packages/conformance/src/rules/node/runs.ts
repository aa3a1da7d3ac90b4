// How a node plays runs.
import { FailureCode } from "@iop/platform-common/gen/iop/v1/run_event_pb"
import { expect, expectSame } from "../../outcomes.ts"
import type { EdgePeer, EdgeRun } from "../../peer/EdgePeer.ts"
import { nameOf } from "../../peer/Peer.ts"
import type { Check, Rule } from "../../Rule.ts"
import type { NodeTrial } from "../../trial/NodeTrial.ts"

const PROMPT = "the quick brown fox, 여우, 🦊"

/** A run that the node has to refuse with its first and only event. */
const refuses = (
  name: string,
  give: (trial: NodeTrial, peer: EdgePeer) => EdgeRun,
  code: FailureCode,
  retryable: boolean,
  lastSeq: number
): Check<NodeTrial> => ({
  name,
  run: async (trial) => {
    const { peer } = await trial.link()
    const { event, seq } = await give(trial, peer).terminal()
    const seqs = lastSeq === 1 ? "seq 1" : `seq 1 to ${lastSeq}`
    const wanted = `failed ${nameOf(FailureCode, code)}, retryable ${retryable}, ${seqs}`
    expect(
      event.case === "failed" &&
        event.value.code === code &&
        event.value.retryable === retryable &&
        seq <= lastSeq,
      wanted,
      () =>
        event.case === "failed"
          ? `failed ${nameOf(FailureCode, event.value.code)}, retryable ${event.value.retryable}, seq ${seq}`
          : `${event.case}, seq ${seq}`
    )
  }
})

const input = { kind: { case: "prompt", value: { text: "conformance" } } } as const

export const runs: ReadonlyArray<Rule<NodeTrial>> = [
  {
    id: "R-RUN-1",
    title: "events carry the handle of a run in progress on their link",
    checks: [
      {
        name: "of each of several runs",
        run: async (trial) => {
          const { peer } = await trial.link()
          const several = [1, 2, 3].map((number) => trial.run(peer, "echo", { prompt: `run ${number}` }))
          for (const [at, run] of several.entries()) {
            await run.completed()
            expectSame("the answer", `run ${at + 1}`, run.text)
          }
          expectSame("events of other handles", 0, peer.strays.length)
        }
      }
    ]
  },
  {
    id: "R-RUN-2",
    title: "a node does not guess handles",
    checks: [
      {
        name: "handles of an earlier link are not used on the next one",
        run: async (trial) => {
          const first = await trial.link()
          const run = trial.run(first.peer, "flood", { acknowledges: false })
          await run.until("a first event", () => run.events[0])
          first.peer.destroy()
          // The run is not wanted any more: no event of it may come.
          const { peer } = await trial.relink()
          await peer.pong("a Pong on the next link")
          await trial.run(peer, "echo").completed()
          expectSame("events of handles that were not given", 0, peer.strays.length)
        }
      }
    ]
  },
  {
    id: "R-RUN-3",
    title: "seq begins at 1 and has no gaps",
    checks: [
      {
        name: "in a run of many events",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "count")
          await run.completed()
          expect(run.events.length > 5, "more than five events", () => String(run.events.length))
          expectSame("the last seq", run.events.length, run.lastSeq)
        }
      }
    ]
  },
  {
    id: "R-RUN-4",
    title: "no seq is sent twice on a link",
    checks: [
      {
        name: "events that are not acknowledged are not repeated by themselves",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "echo", { acknowledges: false })
          await run.completed()
          // The same acknowledgement twice, and an older one after it, change nothing.
          run.ack(1)
          run.ack(1)
          await peer.pong("a Pong after acknowledgements")
          run.ack(run.lastSeq)
          run.ack(1)
          await peer.pong("a Pong after acknowledgements")
          expectSame("repeated events", 0, run.repeated.length)
        }
      }
    ]
  },
  {
    id: "R-RUN-5",
    title: "started comes first and once",
    checks: [
      {
        name: "in every run that does not fail before it",
        run: async (trial) => {
          const { peer } = await trial.link()
          for (const kind of ["echo", "count"] as const) {
            const run = trial.run(peer, kind)
            await run.completed()
            expectSame("the first event", "started", run.events[0]?.event.case ?? "")
          }
        }
      }
    ]
  },
  {
    id: "R-RUN-6",
    title: "exactly one terminal event, and nothing after it",
    checks: [
      {
        name: "not even after a cancel that comes too late",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "echo", { acknowledges: false })
          await run.completed()
          run.cancel()
          await peer.pong("a Pong after a late cancel")
          run.checkGrammar()
          run.ack(run.lastSeq)
          run.cancel()
          await peer.pong("a Pong after a later cancel")
          run.checkGrammar()
          expectSame("events of other handles", 0, peer.strays.length)
        }
      }
    ]
  },
  {
    id: "R-RUN-7",
    title: "values are of this version",
    checks: [
      {
        name: "events, contents and finish reasons are known ones",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "echo", { prompt: PROMPT })
          const { event } = await run.terminal()
          for (const came of run.events) {
            expect(came.event.case !== undefined, "a known event", () => "an unknown one")
            if (came.event.case === "delta") {
              expect(came.event.value.content.case !== undefined, "a known content", () => "an unknown one")
            }
          }
          expect(event.case === "completed", "completed", () => String(event.case))
          const reason = event.case === "completed" ? event.value.finishReason : 0
          expect(reason >= 1 && reason <= 4, "a finish reason from 1 to 4", () => String(reason))
          expectSame("the answer", PROMPT, run.text)
        }
      }
    ]
  },
  {
    id: "R-RUN-8",
    title: "a run that the node does not take is failed REJECTED, seq 1",
    checks: [
      refuses(
        "an unknown adapter",
        (_, peer) =>
          peer.run({ runId: "unknown-adapter", adapter: "no-such-adapter", target: "echo", input }),
        FailureCode.REJECTED,
        true,
        1
      ),
      refuses(
        "an unknown target",
        (trial, peer) =>
          peer.run({
            runId: "unknown-target",
            adapter: trial.host.node.adapter.name,
            target: "no-such-target",
            input
          }),
        FailureCode.REJECTED,
        true,
        1
      ),
      refuses(
        "no input that the node knows is INVALID_INPUT",
        (trial, peer) =>
          peer.run({
            runId: "no-input",
            adapter: trial.host.node.adapter.name,
            target: trial.host.node.targets.echo
          }),
        FailureCode.INVALID_INPUT,
        false,
        // It may have started before it looked at the input.
        2
      )
    ]
  },
  {
    id: "R-RUN-9",
    title: "without stream deltas come gathered",
    checks: [
      {
        name: "one delta for a short answer",
        run: async (trial) => {
          const { peer } = await trial.link()
          const run = trial.run(peer, "count", { stream: false })
          await run.completed()
          const streamed = trial.run(peer, "count")
          await streamed.completed()
          const deltas = (of: EdgeRun) => of.events.filter(({ event }) => event.case === "delta").length
          expectSame("deltas without stream", 1, deltas(run))
          expect(deltas(streamed) > 1, "more than one delta with stream", () => String(deltas(streamed)))
        }
      }
    ]
  },
  {
    id: "R-RUN-10",
    title: "a handle that is 0 or not new, or a run that is not, ends the link",
    checks: [
      wrongRun("handle 0", (first) => ({ runId: `${first.runId}-other`, attempt: 1, handle: 0 })),
      wrongRun("a handle that is in use", (first) => ({
        runId: `${first.runId}-other`,
        attempt: 1,
        handle: first.handle
      })),
      wrongRun("a run and an attempt that the node has", (first) => ({
        runId: first.runId,
        attempt: first.attempt,
        handle: first.handle + 1
      })),
      {
        name: "another attempt of a run is another run",
        run: async (trial) => {
          const { peer } = await trial.link()
          const first = trial.run(peer, "echo")
          await first.completed()
          const second = peer.run({
            runId: first.runId,
            attempt: 2,
            adapter: trial.host.node.adapter.name,
            target: trial.host.node.targets.echo,
            input
          })
          await second.completed()
        }
      }
    ]
  }
]

/** A node that closes for this RunRequest, while it has another run. */
function wrongRun(
  name: string,
  request: (first: EdgeRun) => { readonly runId: string; readonly attempt: number; readonly handle: number }
): Check<NodeTrial> {
  return {
    name,
    run: async (trial) => {
      const { peer } = await trial.link()
      const first = trial.run(peer, "flood", { acknowledges: false })
      await first.until("a first event", () => first.events[0])
      peer.send({
        case: "runRequest",
        value: {
          ...request(first),
          adapter: trial.host.node.adapter.name,
          target: trial.host.node.targets.echo,
          input
        }
      })
      await peer.ended(`${name}: the end of the link`)
    }
  }
}
