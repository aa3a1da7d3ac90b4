// How an edge takes the events of runs, right and wrong ones.
import { FailureCode } from "@iop/platform-common/gen/iop/v1/run_event_pb"
import { expect, expectSame } from "../../outcomes.ts"
import type { AdminRun } from "../../peer/Admin.ts"
import { frameOf } from "../../peer/framing.ts"
import { completed, type NodeRun, nodeFrame, started, text } from "../../peer/NodePeer.ts"
import { bytesField, numberField } from "../../peer/wireBytes.ts"
import type { Check, Rule } from "../../Rule.ts"
import type { EdgeTrial } from "../../trial/EdgeTrial.ts"

/** A handle that no edge has given yet. */
const UNKNOWN_HANDLE = 0xffff_fff0

const strays = (handle: number, count: number): Buffer =>
  Buffer.concat(
    Array.from({ length: count }, () =>
      nodeFrame({ case: "runEvent", value: { handle, seq: 1, event: started } })
    )
  )

/** A run that these events break: it fails with `protocol_error`, the node gets a RunCancel, and the link lives on. */
const breaksRun = (name: string, play: (run: NodeRun) => void): Check<EdgeTrial> => ({
  name,
  run: async (trial) => {
    const peer = await trial.ready()
    const submitted = await trial.submit(peer)
    play(submitted.run)
    await submitted.run.cancelled()
    expectProtocolError(await trial.ended(submitted))
    // The answer frees the slot.
    submitted.run.send({ case: "cancelled", value: {} })
    await trial.alive(peer, "a link that outlives a run which broke a rule")
  }
})

/** Fails unless the run has failed because its node broke a rule. */
export const expectProtocolError = ({ failure, phase }: AdminRun): void =>
  expectSame("the run's failure", "protocol_error", failure?.code ?? phase)

/** The text of a run as its caller gets it. */
export const textOf = async (trial: EdgeTrial, id: string): Promise<string> =>
  (await trial.admin.events(id)).map((event) => (event.type === "delta" ? (event.text ?? "") : "")).join("")

const event = (handle: number, seq: number, body: Uint8Array): Buffer =>
  frameOf(bytesField(4, Buffer.concat([numberField(1, handle), numberField(2, seq), body])))

export const runs: ReadonlyArray<Rule<EdgeTrial>> = [
  {
    id: "R-RUN-1",
    title: "events of unknown handles are dropped, and many end the link",
    checks: [
      {
        name: "99 such events are dropped",
        run: async (trial) => {
          const peer = await trial.register()
          peer.sendBytes(strays(UNKNOWN_HANDLE, 99))
          await trial.alive(peer, "a link that survives 99 events of an unknown handle")
        }
      },
      {
        name: "100 within ten seconds end the link",
        run: async (trial) => {
          const peer = await trial.register()
          peer.sendBytes(strays(UNKNOWN_HANDLE, 100))
          await trial.endedByRule(peer, "100 events of an unknown handle")
        }
      }
    ]
  },
  {
    id: "R-RUN-2",
    title: "events for another node's run are forged: ten end the link, the run is untouched",
    checks: [
      {
        name: "a forger's link is ended and the run goes on",
        run: async (trial) => {
          const request = trial.secondRequest()
          const peer = await trial.ready()
          const forger = await trial.register(request)
          const submitted = await trial.submit(peer)
          submitted.run.send(started)
          forger.sendBytes(
            Buffer.concat(
              Array.from({ length: 10 }, (_, at) =>
                nodeFrame({
                  case: "runEvent",
                  value: { handle: submitted.run.handle, seq: at + 2, event: text("forged") }
                })
              )
            )
          )
          await trial.endedByRule(forger, "ten events for another node's run")
          submitted.run.send(text("own"), completed)
          expectSame("the run", "completed", (await trial.ended(submitted)).phase)
          expectSame("its text", "own", await textOf(trial, submitted.id))
        }
      }
    ]
  },
  {
    id: "R-RUN-3",
    title: "a gap in seq fails the run alone",
    checks: [
      breaksRun("a first event with seq 2", (run) => run.sendAs(2, started)),
      breaksRun("a gap", (run) => {
        run.send(started)
        run.sendAs(3, text("late"))
      }),
      {
        name: "other runs go on",
        run: async (trial) => {
          const peer = await trial.ready()
          const broken = await trial.submit(peer)
          const good = await trial.submit(peer)
          good.run.send(started)
          broken.run.sendAs(2, started)
          await broken.run.cancelled()
          broken.run.send({ case: "cancelled", value: {} })
          good.run.send(text("good"), completed)
          expectSame("the other run", "completed", (await trial.ended(good)).phase)
        }
      }
    ]
  },
  {
    id: "R-RUN-4",
    title: "a seq that the edge has is dropped, the first counts",
    checks: [
      {
        name: "a repeated delta does not show",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started, text("first"))
          submitted.run.sendAs(2, text("second"))
          submitted.run.send(completed)
          expectSame("the run", "completed", (await trial.ended(submitted)).phase)
          expectSame("its text", "first", await textOf(trial, submitted.id))
        }
      }
    ]
  },
  {
    id: "R-RUN-5",
    title: "started comes first and once",
    checks: [
      breaksRun("a delta before started", (run) => run.send(text("early"))),
      breaksRun("completed before started", (run) => run.send(completed)),
      breaksRun("a second started", (run) => run.send(started, started))
    ]
  },
  {
    id: "R-RUN-6",
    title: "nothing counts after a terminal event",
    checks: [
      {
        name: "what follows is dropped",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send(started, text("all"), completed, text("more"), {
            case: "failed",
            value: { code: FailureCode.INTERNAL, message: "after the end" }
          })
          await submitted.run.acknowledged(3)
          await trial.alive(peer, "a link that survives events after a terminal one")
          expectSame("the run", "completed", (await trial.ended(submitted)).phase)
          expectSame("its text", "all", await textOf(trial, submitted.id))
        }
      }
    ]
  },
  {
    id: "R-RUN-7",
    title: "values of a newer version are mapped",
    checks: [
      {
        name: "an unknown finish reason is read as stop, an unknown event counts its seq",
        run: async (trial) => {
          const peer = await trial.ready()
          const { id, run } = await trial.submit(peer)
          run.send(started)
          peer.sendBytes(event(run.handle, 2, bytesField(15, numberField(1, 1))))
          // Content of an unknown kind, in a delta.
          peer.sendBytes(event(run.handle, 3, bytesField(4, bytesField(20, Buffer.from("?")))))
          run.sendAs(4, text("known"))
          peer.sendBytes(event(run.handle, 5, bytesField(6, numberField(1, 99))))
          const ended = await trial.ended({ id })
          expectSame("the run", "completed", ended.phase)
          expectSame("its finish reason", "stop", ended.finish_reason ?? "")
          expectSame("its text", "known", await textOf(trial, id))
        }
      },
      {
        name: "an unknown failure code is read as an error of the adapter",
        run: async (trial) => {
          const peer = await trial.ready()
          const { id, run } = await trial.submit(peer)
          peer.sendBytes(event(run.handle, 1, bytesField(7, numberField(1, 99))))
          const { failure, phase } = await trial.ended({ id })
          expectSame("the run's failure", "adapter_error", failure?.code ?? phase)
        }
      }
    ]
  },
  {
    id: "R-RUN-8",
    title: "a rejected run fails or gets another attempt",
    checks: [
      {
        name: "REJECTED is taken as the end of the attempt",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = await trial.submit(peer)
          submitted.run.send({
            case: "failed",
            value: { code: FailureCode.REJECTED, message: "conformance", retryable: true }
          })
          await submitted.run.acknowledged(1)
          const { attempt, phase } = await trial.admin.run(submitted.id)
          expect(
            phase === "failed" || phase === "queued" || attempt > submitted.run.request.attempt,
            "a run that failed or waits for another attempt",
            () => `one that is ${phase} in attempt ${attempt}`
          )
        }
      }
    ]
  },
  {
    id: "R-RUN-9",
    title: "a whole answer is asked for, and taken in pieces all the same",
    checks: [
      {
        name: "stream says what the caller wants",
        run: async (trial) => {
          const peer = await trial.ready()
          const whole = await trial.submit(peer, { stream: false })
          expectSame("stream of the RunRequest", false, whole.run.request.stream)
          whole.run.send(started, text("in "), text("pieces"), completed)
          expectSame("the run", "completed", (await trial.ended(whole)).phase)
          expectSame("its text", "in pieces", await textOf(trial, whole.id))
          const streamed = await trial.submit(peer)
          expectSame("stream of the RunRequest", true, streamed.run.request.stream)
        }
      }
    ]
  },
  {
    id: "R-RUN-10",
    title: "handles are larger than 0 and new, runs and attempts too",
    checks: [
      {
        name: "of four runs on a link, two of them over",
        run: async (trial) => {
          const peer = await trial.ready()
          const submitted = []
          for (let count = 0; count < 4; count += 1) {
            const one = await trial.submit(peer)
            if (count < 2) {
              one.run.send(started, completed)
              await trial.ended(one)
            }
            submitted.push(one.run.request)
          }
          const handles = new Set(submitted.map(({ handle }) => handle))
          expectSame("different handles", submitted.length, handles.size)
          expect(!handles.has(0), "handles larger than 0", () => "0")
          const names = new Set(submitted.map(({ attempt, runId }) => `${runId}/${attempt}`))
          expectSame("different runs", submitted.length, names.size)
        }
      }
    ]
  }
]
