// One edge for the tests of a block, and the books after each of them.
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest"
import { expectBalancedBooks } from "./books.ts"
import { mockNodeConfig, type TestConfig, tokenOf } from "./config.ts"
import { type EdgeOptions, EdgeProcess } from "./EdgeProcess.ts"
import type { RawNode } from "./RawNode.ts"

/** The node that only the books use. */
export const spareNode = mockNodeConfig("spare", {
  adapters: [{ name: "spare-mock", type: "mock", slots: 1 }]
})

export const spare = { id: "spare", token: tokenOf("spare"), adapter: "spare-mock", target: "echo" }

export interface SharedEdge {
  readonly edge: EdgeProcess
  /** Given back after the present test. */
  readonly cleanup: AsyncDisposableStack
  /** A registered raw node whose adapter `mock` offers these targets, `echo` unless said otherwise. */
  readonly node: (id: string, targets?: ReadonlyArray<string>) => Promise<RawNode>
}

/** Starts an edge before the tests of this block, checks its books after each and ends it after all. */
export const useEdge = (config: TestConfig, options: EdgeOptions = {}): SharedEdge => {
  const whole = new AsyncDisposableStack()
  let edge: EdgeProcess | undefined
  let cleanup = new AsyncDisposableStack()
  const started = () => {
    if (edge === undefined) throw new Error("the edge has not started")
    return edge
  }
  beforeAll(async () => {
    edge = await EdgeProcess.start(whole, { ...config, nodes: [...(config.nodes ?? []), spareNode] }, options)
  })
  beforeEach(() => {
    cleanup = new AsyncDisposableStack()
  })
  afterEach(async () => {
    await cleanup.disposeAsync()
    await expectBalancedBooks(started(), { spare })
  })
  afterAll(() => whole.disposeAsync())
  return {
    get edge() {
      return started()
    },
    get cleanup() {
      return cleanup
    },
    node: (id, targets = ["echo"]) =>
      started().node(cleanup, { id, token: tokenOf(id), offers: { mock: targets } })
  }
}
