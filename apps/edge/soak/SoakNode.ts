// A node of a soak: a real fake node behind a proxy of its own, and everything bad that can happen to the two.
import { ChaosProxy } from "../e2e/harness/ChaosProxy.ts"
import { tokenOf } from "../e2e/harness/config.ts"
import type { EdgeProcess } from "../e2e/harness/EdgeProcess.ts"
import { MockNode } from "../e2e/harness/MockNode.ts"
import type { Random } from "../e2e/harness/Random.ts"

/** Waits unless the soak is over. */
export type Pause = (ms: number) => Promise<void>

type Fault = (node: SoakNode, random: Random, pause: Pause) => Promise<void>

/** The clocks of a soak, in milliseconds. A link is dead after three heartbeats. */
export const HEARTBEAT_MS = 400
export const RESUME_GRACE_MS = 2_000

export class SoakNode {
  readonly id: string
  readonly proxy: ChaosProxy
  readonly #cleanup: AsyncDisposableStack
  #process: MockNode
  #busy = false

  private constructor(cleanup: AsyncDisposableStack, id: string, proxy: ChaosProxy) {
    this.id = id
    this.proxy = proxy
    this.#cleanup = cleanup
    this.#process = this.#start()
  }

  static async join(cleanup: AsyncDisposableStack, edge: EdgeProcess, id: string): Promise<SoakNode> {
    return new SoakNode(cleanup, id, await ChaosProxy.open(cleanup, edge.nodes))
  }

  /** Commits a fault and mends it; the name of the fault, or undefined while another one is being mended. */
  async suffer(random: Random, pause: Pause, committed: (fault: string) => void): Promise<void> {
    if (this.#busy) return
    this.#busy = true
    const name = random.pick([...faults.keys()])
    committed(name)
    try {
      await faults.get(name)?.(this, random, pause)
    } finally {
      this.mend()
      this.#busy = false
    }
  }

  /** Calm weather and a running process, whatever happened. */
  mend(): void {
    this.proxy.refuses = false
    this.proxy.thaw()
    this.#process.signal("SIGCONT")
    if (this.#process.exit !== undefined) this.#process = this.#start()
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal)
  }

  async kill(): Promise<void> {
    await this.#process.kill()
  }

  restart(): void {
    this.#process = this.#start()
  }

  #start(): MockNode {
    return new MockNode(this.#cleanup, { edge: this.proxy.address, token: tokenOf(this.id), name: this.id })
  }
}

/** From a hiccup to more than a dead link. */
const aWhile = (random: Random): number => 50 + random.below(HEARTBEAT_MS * 5)

const faults: ReadonlyMap<string, Fault> = new Map<string, Fault>([
  [
    "cut",
    async (node) => {
      node.proxy.cut()
    }
  ],
  [
    "cut and refused",
    async (node, random, pause) => {
      node.proxy.refuses = true
      node.proxy.cut()
      await pause(aWhile(random))
    }
  ],
  [
    "frozen",
    async (node, random, pause) => {
      node.proxy.freeze()
      await pause(aWhile(random))
    }
  ],
  [
    "one direction lost",
    async (node, random, pause) => {
      node.proxy.blackhole(random.pick(["up", "down"] as const))
      await pause(HEARTBEAT_MS * 4)
    }
  ],
  [
    "both directions lost",
    async (node, _, pause) => {
      node.proxy.blackhole("up", "down")
      await pause(HEARTBEAT_MS * 4)
    }
  ],
  [
    "sliced and late",
    async (node, random, pause) => {
      for (const weather of [node.proxy.weather.up, node.proxy.weather.down]) {
        weather.slice = 1 + random.below(100)
        weather.delayMs = random.below(30)
      }
      await pause(aWhile(random))
    }
  ],
  [
    "node killed",
    async (node, random, pause) => {
      await node.kill()
      await pause(random.below(1_000))
      node.restart()
    }
  ],
  [
    "node stopped and continued",
    async (node, random, pause) => {
      node.signal("SIGSTOP")
      await pause(aWhile(random))
    }
  ],
  [
    "new address",
    async (node, random, pause) => {
      node.proxy.source = `127.0.0.${2 + random.below(200)}`
      node.proxy.blackhole("up", "down")
      await pause(HEARTBEAT_MS * 4)
    }
  ]
])
