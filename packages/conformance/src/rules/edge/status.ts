// What an edge makes of a node's words about itself.
import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { expect } from "../../outcomes.ts"
import type { NodePeer } from "../../peer/NodePeer.ts"
import { nameOf } from "../../peer/Peer.ts"
import type { Rule } from "../../Rule.ts"
import type { EdgeTrial } from "../../trial/EdgeTrial.ts"

/** Fails if a run would go to the node once the edge has read all that was sent. */
const notChosen = async (trial: EdgeTrial, peer: NodePeer, why: string): Promise<void> => {
  await trial.alive(peer, why)
  const { adapter, target } = trial.offer(peer)
  const chosen = await trial.admin.chosen(adapter, target)
  expect(chosen !== peer.accepted?.alias, `no run for a node ${why}`, () => `runs that go to ${chosen}`)
}

export const status: ReadonlyArray<Rule<EdgeTrial>> = [
  {
    id: "R-CONF-1",
    title: "no run goes to a node whose revision is not the one that was sent",
    checks: [
      {
        name: "another revision gets no runs, the right one does",
        run: async (trial) => {
          const peer = await trial.ready()
          const { adapter, target } = trial.offer(peer)
          peer.status({ [adapter]: [target] }, { configRevision: "another" })
          await notChosen(trial, peer, "with another revision")
          await trial.offerRuns(peer)
          await trial.untilChosen(peer, adapter)
        }
      },
      {
        name: "a node without a status gets no runs",
        run: async (trial) => {
          trial.admin
          await notChosen(trial, await trial.register(), "that has reported nothing")
        }
      }
    ]
  },
  {
    id: "R-CONF-2",
    title: "adapters that are not of the configuration are ignored",
    checks: [
      {
        name: "the link lives",
        run: async (trial) => {
          const peer = await trial.register()
          peer.status({ "no-such-adapter": ["target"] })
          await trial.alive(peer, "a link that lives although its status names a strange adapter")
        }
      },
      {
        name: "nothing is routed to them",
        run: async (trial) => {
          const peer = await trial.ready()
          const { adapter, target } = trial.offer(peer)
          peer.status({ "no-such-adapter": ["target"], [adapter]: [target] })
          await trial.alive(peer, "a link that lives although its status names a strange adapter")
          const chosen = await trial.admin.chosen("no-such-adapter", "target")
          expect(chosen === undefined, "no run for a strange adapter", () => `runs that go to ${chosen}`)
          await trial.untilChosen(peer, adapter)
        }
      }
    ]
  },
  {
    id: "R-CONF-3",
    title: "only adapters that are ready get runs",
    checks: [
      ...([AdapterState.STARTING, AdapterState.DEGRADED, AdapterState.UNAVAILABLE] as const).map((state) => ({
        name: `${nameOf(AdapterState, state)} gets none`,
        run: async (trial: EdgeTrial) => {
          const peer = await trial.ready()
          const { adapter, target } = trial.offer(peer)
          peer.status({ [adapter]: [target] }, { state, reason: "as it is told" })
          await notChosen(trial, peer, `whose adapter is ${nameOf(AdapterState, state)}`)
        }
      }))
    ]
  }
]
