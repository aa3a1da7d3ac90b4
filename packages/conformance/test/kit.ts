// The kit as the tests use it: judged rules in, results out.

import { adapterConfig } from "../src/cli/adapterConfig.ts"
import { judge } from "../src/judge.ts"
import { Admin } from "../src/peer/Admin.ts"
import type { RuleResult } from "../src/Rule.ts"
import { edgeRules } from "../src/rules/edge/edgeRules.ts"
import { nodeRules } from "../src/rules/node/nodeRules.ts"
import type { Address } from "../src/trial/Address.ts"
import { EdgeTrial } from "../src/trial/EdgeTrial.ts"
import { NodeHost, NodeTrial } from "../src/trial/NodeTrial.ts"
import { MutatingProxy, type Mutations } from "./MutatingProxy.ts"
import { ADMIN_KEY, MOCK_NODE, type RunningEdge, SECOND_TOKEN, TOKEN } from "./processes.ts"

const honest = (): Mutations => ({})

/** Judges the real edge, seen through the mutations. */
export const judgeEdge = async (
  edge: RunningEdge,
  only: ReadonlyArray<string>,
  mutations: () => Mutations = honest,
  patienceMs = 10_000
): Promise<ReadonlyArray<RuleResult>> => {
  await using cleanup = new AsyncDisposableStack()
  const proxy = await MutatingProxy.start(cleanup, () => edge.nodes, mutations)
  const admin = new Admin(edge.http, ADMIN_KEY)
  const subject = { address: proxy.address, token: TOKEN, secondToken: SECOND_TOKEN, admin, patienceMs }
  return await judge({
    rules: edgeRules,
    only,
    extras: ["slow"],
    trial: (stack) => new EdgeTrial(subject, stack),
    onResult: () => undefined
  })
}

/** Judges the real fake node, seen through the mutations. */
export const judgeNode = async (
  only: ReadonlyArray<string>,
  mutations: () => Mutations = honest,
  patienceMs = 10_000
): Promise<ReadonlyArray<RuleResult>> => {
  await using cleanup = new AsyncDisposableStack()
  let kit: Address = { host: "127.0.0.1", port: 0 }
  const proxy = await MutatingProxy.start(cleanup, () => kit, mutations)
  const { host, port } = proxy.address
  const targets = { echo: "echo", count: "count", never: "never", flood: "flood" }
  const node = await NodeHost.listen({
    listen: { host: "127.0.0.1", port: 0 },
    token: TOKEN,
    command: [process.execPath, MOCK_NODE, "--edge", `${host}:${port}`],
    adapter: adapterConfig("mock", targets, undefined),
    targets,
    patienceMs,
    firstDialMs: 60_000
  })
  cleanup.defer(() => node.close())
  kit = node.address
  return await judge({
    rules: nodeRules,
    only,
    extras: ["strict"],
    trial: (stack) => new NodeTrial(node, stack),
    onResult: () => undefined
  })
}
