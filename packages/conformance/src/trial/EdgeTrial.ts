// An edge under judgement, and what one check has of it: links, runs, and the certainty that all of it is gone after.
import { randomBytes } from "node:crypto"
import { connect } from "node:net"
import type { MessageInitShape } from "@bufbuild/protobuf"
import type { HeldRunSchema, RegisterAccepted } from "@iop/platform-common/gen/iop/v1/register_pb"
import { NotTestable, RuleBroken } from "../outcomes.ts"
import type { Admin, AdminRun, Submission } from "../peer/Admin.ts"
import { NodePeer, type NodeRun } from "../peer/NodePeer.ts"
import { describe } from "../peer/Peer.ts"
import type { Address } from "./Address.ts"

/** The edge to judge. */
export interface EdgeUnderTest {
  readonly address: Address
  /** The token of a node that is otherwise not running. */
  readonly token: string
  /** The token of another one, for the rules that take two. */
  readonly secondToken?: string | undefined
  /** Whoever submits runs. */
  readonly admin?: Admin | undefined
  /** Adapter and target that the kit offers; by default the first of the node's configuration. */
  readonly adapter?: string | undefined
  readonly target?: string | undefined
  /** How long the edge may take to answer, in milliseconds. */
  readonly patienceMs: number
}

/** What a request says, as far as a check wants it otherwise. */
export interface RegisterInit {
  readonly protocolVersion?: { readonly major: number; readonly minor: number }
  readonly token?: string
  readonly bootId?: Uint8Array
  readonly agentName?: string
  readonly agentVersion?: string
  readonly adapterKinds?: Array<string>
  readonly heldRuns?: Array<MessageInitShape<typeof HeldRunSchema>>
}

/** Of this process, so that each link replaces the one before at once. */
const bootId = randomBytes(16)
const secondBootId = randomBytes(16)

/** A run that was submitted, at the node that got it. */
export interface SubmittedRun {
  readonly id: string
  readonly run: NodeRun
}

/** What one check of an edge uses. */
export class EdgeTrial {
  readonly edge: EdgeUnderTest
  readonly #cleanup: AsyncDisposableStack

  constructor(edge: EdgeUnderTest, cleanup: AsyncDisposableStack) {
    this.edge = edge
    this.#cleanup = cleanup
  }

  /** The admin API; without one the check is not testable. */
  get admin(): Admin {
    if (this.edge.admin === undefined) throw new NotTestable("somebody has to submit runs: give --admin URL")
    return this.edge.admin
  }

  /** How long the edge may take to answer, in milliseconds. */
  get patienceMs(): number {
    return this.edge.patienceMs
  }

  /** Does something when the check is over, however it ends. */
  after(finish: () => void | Promise<void>): void {
    this.#cleanup.defer(async () => finish())
  }

  /** A valid request; fields may be replaced. */
  request(change: RegisterInit = {}): RegisterInit & { readonly token: string } {
    return {
      protocolVersion: { major: 1, minor: 0 },
      token: this.edge.token,
      bootId,
      agentName: "iop-conformance",
      agentVersion: "0.1.0",
      adapterKinds: ["mock", "openai", "ollama", "cli"],
      ...change
    }
  }

  /** The request of the second node. */
  secondRequest(): RegisterInit {
    if (this.edge.secondToken === undefined) {
      throw new NotTestable("it takes a second node: set IOP_SECOND_NODE_TOKEN to its token")
    }
    return this.request({ token: this.edge.secondToken, bootId: secondBootId })
  }

  /** Connects and says nothing. */
  async connect(): Promise<NodePeer> {
    const socket = connect({ ...this.edge.address, allowHalfOpen: true })
    this.after(() => {
      socket.destroy()
    })
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve)
      socket.once("error", reject)
    })
    return new NodePeer(socket, this.patienceMs)
  }

  /** Connects and registers. */
  async register(change: RegisterInit = {}): Promise<NodePeer> {
    const peer = await this.connect()
    accepted(peer, await peer.handshake(this.request(change)))
    return peer
  }

  /** A link that takes runs. */
  async ready(change: RegisterInit = {}): Promise<NodePeer> {
    const peer = await this.register(change)
    const { adapter } = this.offer(peer)
    await this.offerRuns(peer)
    await this.untilChosen(peer, adapter)
    return peer
  }

  /** Reports the adapter as ready. */
  async offerRuns(peer: NodePeer): Promise<void> {
    const { adapter, target } = this.offer(peer)
    peer.status({ [adapter]: [target] })
  }

  /** Adapter and target that the kit offers on this link. */
  offer(peer: NodePeer): { readonly adapter: string; readonly target: string } {
    const adapters = peer.accepted?.config?.adapters ?? []
    const { adapter = adapters[0]?.name } = this.edge
    if (adapter === undefined) {
      throw new NotTestable("the node has no adapter in the edge's configuration: give it one")
    }
    const configured = adapters.find(({ name }) => name === adapter)?.targets[0]
    return { adapter, target: this.edge.target ?? configured ?? "conformance" }
  }

  /** Waits until the edge would give a run to this node. */
  async untilChosen(peer: NodePeer, adapter: string): Promise<void> {
    const { target } = this.offer(peer)
    const alias = peer.accepted?.alias
    await this.admin.until(
      "a node that takes runs once its status says that its adapter is ready",
      async () => {
        const chosen = await this.admin.chosen(adapter, target)
        return { found: chosen === alias ? true : undefined, seen: `runs that go to ${chosen ?? "nobody"}` }
      },
      RUN_WAIT_MS
    )
  }

  /** A run for the link, cancelled when the check is over. */
  async submit(peer: NodePeer, change: Partial<Submission> = {}): Promise<SubmittedRun> {
    const { id } = await this.queue(peer, change)
    return { id, run: await peer.run(id, RUN_WAIT_MS) }
  }

  /** Submits a run and does not wait for the edge to send it. */
  async queue(peer: NodePeer, change: Partial<Submission> = {}): Promise<AdminRun> {
    const run = await this.admin.submit({ ...this.offer(peer), prompt: "conformance", ...change })
    this.after(async () => {
      await this.admin.cancel(run.id)
      await this.admin.ended(run.id, RUN_WAIT_MS)
    })
    return run
  }

  /** The run's end, as its caller sees it. */
  async ended(run: { readonly id: string }, boundMs = RUN_WAIT_MS): Promise<AdminRun> {
    return this.admin.ended(run.id, boundMs)
  }

  /**
   * Proves that the edge has read everything that was sent on the link, and that the link lives: another process asks
   * for the identity, the edge pings the link, the link answers, and the other process is refused.
   */
  async alive(peer: NodePeer, what: string): Promise<void> {
    const other = await this.connect()
    const { result } = await other.handshake(this.request({ bootId: randomBytes(16) }))
    if (peer.over !== undefined)
      throw new RuleBroken(what, `the end of the link, after ${describe(peer.received.at(-1))}`)
    if (result.case !== "rejected") {
      throw new RuleBroken(what, "an edge that gave the node's identity away, as if the link were dead")
    }
  }

  /** Waits until the edge ends the registered link because of a broken rule. */
  async endedByRule(peer: NodePeer, what: string, goodbye = true): Promise<void> {
    const end = `${what}: ${goodbye ? "Goodbye PROTOCOL_ERROR and " : ""}the end of the link`
    if (goodbye) {
      const { code } = await peer.next("goodbye", end)
      if (code !== GOODBYE_PROTOCOL_ERROR) throw new RuleBroken(end, `Goodbye with code ${code}`)
    }
    await peer.ended(end)
  }
}

/** How long a run may take to reach its node: a circuit that failing runs have opened is closed again by then. */
export const RUN_WAIT_MS = 15_000
const GOODBYE_PROTOCOL_ERROR = 3

/** What the edge accepted; fails if it did not. */
export const accepted = (
  peer: NodePeer,
  { result }: Awaited<ReturnType<NodePeer["response"]>>
): RegisterAccepted => {
  if (result.case === "accepted") return result.value
  throw new RuleBroken("an accepted registration", describe(peer.received.at(-1)))
}
