// What a node reports about itself.
import { AdapterState } from "@iop/platform-common/gen/iop/v1/status_pb"
import { expect, expectSame } from "../../outcomes.ts"
import { nameOf } from "../../peer/Peer.ts"
import type { Rule } from "../../Rule.ts"
import type { NodeTrial } from "../../trial/NodeTrial.ts"

export const status: ReadonlyArray<Rule<NodeTrial>> = [
  {
    id: "R-CONF-1",
    title: "a NodeStatus carries the revision that was sent",
    checks: [
      {
        name: "after the first configuration, and after another one on the next link",
        run: async (trial) => {
          const { adapter } = trial.host.node
          const { peer, revision } = await trial.link()
          peer.destroy()
          const config = { ...trial.config(), revision: `${revision}-changed` }
          const next = await trial.accept(await trial.redial(), { config })
          await next.peer.ready(adapter.name, config.revision)
        }
      }
    ]
  },
  {
    id: "R-CONF-2",
    title: "a NodeStatus names the adapters of the configuration",
    checks: [
      {
        name: "each of them, and no other; the targets are those that were configured",
        run: async (trial) => {
          const { adapter } = trial.host.node
          const { peer } = await trial.accept(await trial.dial())
          const last = await peer.ready(adapter.name, trial.config().revision ?? "")
          const names = last.adapters.map(({ name }) => name).join(", ")
          expectSame("the adapters", adapter.name, names)
          const wanted = [...(adapter.targets ?? [])].sort().join(", ")
          const targets = (last.adapters[0]?.targets ?? [])
            .map(({ name }) => name)
            .sort()
            .join(", ")
          if (wanted !== "") expectSame("the targets", wanted, targets)
        }
      }
    ]
  },
  {
    id: "R-CONF-3",
    title: "an adapter that the node cannot run is UNAVAILABLE, and the others work",
    checks: [
      {
        name: "an adapter of an unknown kind and one without settings",
        run: async (trial) => {
          const { adapter } = trial.host.node
          const config = {
            ...trial.config(
              { name: "strange", settings: { case: "custom", value: { kind: "no-such-kind" } } },
              { name: "empty" }
            ),
            revision: "with-strangers"
          }
          const { peer } = await trial.accept(await trial.dial(), { config })
          const found = await peer.status(
            "a NodeStatus with all three adapters settled",
            ({ adapters }) =>
              adapters.length === 3 && adapters.every(({ state }) => state !== AdapterState.STARTING)
          )
          for (const { name, reason, state } of found.adapters) {
            const wanted = name === adapter.name ? AdapterState.READY : AdapterState.UNAVAILABLE
            expectSame(`adapter ${name} as`, nameOf(AdapterState, wanted), nameOf(AdapterState, state))
            if (wanted === AdapterState.UNAVAILABLE)
              expect(reason !== "", `a reason for ${name}`, () => "none")
          }
        }
      }
    ]
  }
]
