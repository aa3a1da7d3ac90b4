// A node under judgement, and what one check has of it: the links that it dials, accepted as the check wants it.
import { type ChildProcess, spawn } from "node:child_process"
import { createServer, type Server } from "node:net"
import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf"
import type { AdapterConfigSchema } from "@iop/platform-common/gen/iop/v1/node_config_pb"
import type { HeldRun, RegisterRequest } from "@iop/platform-common/gen/iop/v1/register_pb"
import { NotTestable, RuleBroken } from "../outcomes.ts"
import { type Acceptance, type Configuration, EdgePeer, type EdgeRun } from "../peer/EdgePeer.ts"
import type { Address } from "./Address.ts"

/** The node to judge. */
export interface NodeUnderTest {
  /** Where the kit listens for it. */
  readonly listen: Address
  /** The token that it is to send. */
  readonly token: string
  /** Starts the node: a program and its arguments, in which `{edge}` stands for HOST:PORT. */
  readonly command?: ReadonlyArray<string> | undefined
  /** The adapter that it is configured with. */
  readonly adapter: MessageInitShape<typeof AdapterConfigSchema> & { readonly name: string }
  readonly targets: Targets
  /** How long the node may take to answer, in milliseconds. */
  readonly patienceMs: number
  /** How long it may take to dial for the first time, in milliseconds. */
  readonly firstDialMs: number
}

/** Targets of the adapter that the checks need; an empty name: the node has none such. */
export interface Targets {
  /** Answers with its prompt. */
  readonly echo: string
  /** Answers in many pieces, if it is asked for 20. */
  readonly count: string
  /** Takes a run and never answers. */
  readonly never: string
  /** Answers with many run windows of small pieces, as fast as it can, if it is asked for 20000. */
  readonly flood: string
}

/** A run window that a flood fills at once, in bytes. */
export const RUN_WINDOW_BYTES = 16 * 1024

/** What the targets are asked; numbers, for those that count as far as they are told. */
const PROMPTS: Readonly<Record<keyof Targets, string>> = {
  echo: "conformance",
  count: "20",
  never: "conformance",
  flood: "20000"
}
/** Largest frame that the kit says it sends, in bytes. */
export const MAX_EDGE_FRAME_BYTES = 1024 * 1024

/** The longest that a node waits before it redials, and the time for the dial itself, in milliseconds. */
const REDIAL_MS = 32_000
/** A link that held for this long begins the backoff anew, in milliseconds, with a margin. */
const STABLE_MS = 10_500
/** Links after whose end the node may wait so long that holding one for ten seconds is quicker. */
const PATIENT_FAILURES = 3
/** How long runs may take to finish when the node stops, in milliseconds. */
const DRAIN_MS = 20_000
/** How much of the output of a node's process is kept for messages. */
const OUTPUT_TAIL = 2000

/** Listens for the node, and starts it where a command says how. */
export class NodeHost {
  readonly node: NodeUnderTest
  readonly #server: Server
  readonly #waiting: Array<EdgePeer> = []
  readonly #wanted: Array<(peer: EdgePeer) => void> = []
  #child: ChildProcess | undefined
  #output = ""
  #failures = 0
  #dialled = false

  private constructor(node: NodeUnderTest, server: Server) {
    this.node = node
    this.#server = server
    server.on("connection", (socket) => {
      const peer = new EdgePeer(socket, node.patienceMs)
      const wanted = this.#wanted.shift()
      if (wanted === undefined) this.#waiting.push(peer)
      else wanted(peer)
    })
  }

  /** Starts to listen. Fails if the port is taken. */
  static async listen(node: NodeUnderTest): Promise<NodeHost> {
    const server = createServer({ allowHalfOpen: true, noDelay: true })
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject)
      server.listen(node.listen.port, node.listen.host, resolve)
    })
    return new NodeHost(node, server)
  }

  /** Where the node is to dial. */
  get address(): Address {
    const address = this.#server.address()
    return { host: this.node.listen.host, port: typeof address === "object" ? (address?.port ?? 0) : 0 }
  }

  /** Whether the kit can start the node anew. */
  get restarts(): boolean {
    return this.node.command !== undefined
  }

  /** The process that was started; undefined without a command. */
  get process(): ChildProcess | undefined {
    return this.#child
  }

  /** Stops the process, if there is one, and listens no more. */
  async close(): Promise<void> {
    await this.#kill()
    for (const peer of this.#waiting.splice(0)) peer.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  /** The next connection of the node, of a new process where there is a command. */
  async dial(): Promise<EdgePeer> {
    if (this.restarts) await this.#start()
    else if (this.#failures >= PATIENT_FAILURES) await this.#settle()
    return this.redial()
  }

  /** Waits until the node has dialled for the first time. Throws `RuleBroken` when it does not. */
  async arrival(): Promise<void> {
    this.#waiting.push(await this.redial())
  }

  /** The next connection of the same process. */
  async redial(boundMs = this.#dialled ? REDIAL_MS : this.node.firstDialMs): Promise<EdgePeer> {
    const peer = await this.#connection(boundMs)
    this.#dialled = true
    this.#failures += 1
    return peer
  }

  /** Holds a link long enough for the node's backoff to begin anew. */
  async #settle(): Promise<void> {
    const peer = await this.redial()
    await peer.request()
    peer.send(acceptedBody(this.node, {}))
    try {
      await peer.nothing(
        "a link that lives",
        ({ body }) => (body.case === "goodbye" ? body : undefined),
        STABLE_MS
      )
      this.#failures = 0
    } finally {
      peer.destroy()
    }
  }

  async #start(): Promise<void> {
    await this.#kill()
    for (const peer of this.#waiting.splice(0)) peer.destroy()
    const { host, port } = this.address
    const edge = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`
    const [program = "", ...args] = (this.node.command ?? []).map((word) => word.replaceAll("{edge}", edge))
    this.#output = ""
    this.#failures = 0
    this.#dialled = false
    const child = spawn(program, args, {
      env: { ...process.env, IOP_NODE_TOKEN: this.node.token, IOP_EDGE: edge },
      stdio: ["ignore", "pipe", "pipe"]
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.#output = `${this.#output}${text}`.slice(-OUTPUT_TAIL)
      })
    }
    child.on("error", (error) => {
      this.#output += error.message
    })
    this.#child = child
    // However the kit ends, the node that it started goes with it.
    const goes = () => child.kill("SIGKILL")
    process.once("exit", goes)
    child.once("close", () => process.off("exit", goes))
  }

  async #kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (
      child === undefined ||
      child.exitCode !== null ||
      child.signalCode !== null ||
      child.pid === undefined
    )
      return
    const gone = new Promise<void>((resolve) => child.once("close", () => resolve()))
    child.kill("SIGKILL")
    await gone
  }

  #connection(boundMs: number): Promise<EdgePeer> {
    const waiting = this.#waiting.splice(0).filter(({ over }) => over === undefined)
    const [first, ...rest] = waiting
    this.#waiting.push(...rest)
    if (first !== undefined) return Promise.resolve(first)
    return new Promise((resolve, reject) => {
      const wanted = (peer: EdgePeer) => {
        clearTimeout(timer)
        resolve(peer)
      }
      const timer = setTimeout(() => {
        this.#wanted.splice(this.#wanted.indexOf(wanted), 1)
        const said =
          this.#output === "" ? "" : `; its process said: ${JSON.stringify(this.#output.slice(-300))}`
        reject(new RuleBroken("a connection of the node", `none within ${boundMs} ms${said}`))
      }, boundMs)
      this.#wanted.push(wanted)
    })
  }
}

const acceptedBody = (node: NodeUnderTest, change: Acceptance) =>
  ({
    case: "registerResponse",
    value: {
      result: {
        case: "accepted",
        value: {
          nodeId: "conformance",
          alias: "conformance",
          edgeId: "iop-conformance",
          linkEpoch: 1n,
          protocolVersion: { major: 1, minor: 0 },
          config: configOf([node.adapter]),
          // No pings: only the checks that are about them send any.
          heartbeatIntervalMs: 120_000,
          heartbeatSuspectAfter: 2,
          heartbeatDeadAfter: 3,
          limits: {
            maxNodeFrameBytes: 1024 * 1024,
            maxEdgeFrameBytes: MAX_EDGE_FRAME_BYTES,
            runWindowBytes: RUN_WINDOW_BYTES
          },
          ...change
        }
      }
    }
  }) as const

const configOf = (adapters: ReadonlyArray<MessageInitShape<typeof AdapterConfigSchema>>): Configuration => ({
  revision: `conformance-${adapters.length}`,
  runtime: { drainTimeoutMs: DRAIN_MS, probeIntervalMs: 15_000 },
  adapters: [...adapters]
})

/** A link that the kit has accepted. */
export interface Link {
  readonly peer: EdgePeer
  readonly request: RegisterRequest
  readonly revision: string
}

/** What one check of a node uses. */
export class NodeTrial {
  readonly host: NodeHost
  readonly #cleanup: AsyncDisposableStack
  #runs = 0

  constructor(host: NodeHost, cleanup: AsyncDisposableStack) {
    this.host = host
    this.#cleanup = cleanup
  }

  /** How long the node may take to answer, in milliseconds. */
  get patienceMs(): number {
    return this.host.node.patienceMs
  }

  /** Does something when the check is over, however it ends. */
  after(finish: () => void | Promise<void>): void {
    this.#cleanup.defer(async () => finish())
  }

  /** The next connection. `fresh`: of a new process, which takes a command. */
  async dial(options: { readonly fresh?: boolean } = {}): Promise<EdgePeer> {
    if (options.fresh === true && !this.host.restarts) {
      throw new NotTestable("it takes a new process: give the node's command after --")
    }
    return this.#own(await this.host.dial())
  }

  /** The connection that follows the end of another. */
  async redial(boundMs?: number): Promise<EdgePeer> {
    return this.#own(await this.host.redial(boundMs))
  }

  /** Accepts a registration. */
  async accept(peer: EdgePeer, change: Acceptance = {}): Promise<Link> {
    const request = await peer.request()
    const body = acceptedBody(this.host.node, change)
    peer.send(body)
    return { peer, request, revision: body.value.result.value.config.revision }
  }

  /** A registered link whose adapter is ready. */
  async link(change: Acceptance = {}, options: { readonly fresh?: boolean } = {}): Promise<Link> {
    const link = await this.accept(await this.dial(options), change)
    await link.peer.ready(this.host.node.adapter.name, link.revision)
    return link
  }

  /** A registered link after another one ended. */
  async relink(
    decide: (held: ReadonlyArray<HeldRun>, peer: EdgePeer) => Acceptance = () => ({})
  ): Promise<Link> {
    const peer = await this.redial()
    const request = await peer.request()
    const body = acceptedBody(this.host.node, decide(request.heldRuns, peer))
    peer.send(body)
    return { peer, request, revision: body.value.result.value.config.revision }
  }

  /** The configuration with these adapters besides the one that is always there. */
  config(...more: ReadonlyArray<MessageInitShape<typeof AdapterConfigSchema>>): Configuration {
    return configOf([this.host.node.adapter, ...more])
  }

  /** Gives the node a run of one of its targets. */
  run(
    peer: EdgePeer,
    kind: keyof Targets,
    options: {
      readonly prompt?: string
      readonly parameters?: JsonObject
      readonly stream?: boolean
      readonly acknowledges?: boolean
    } = {}
  ): EdgeRun {
    const target = this.host.node.targets[kind]
    if (target === "")
      throw new NotTestable(`it takes a target that behaves like ${kind}: name it with --${kind}`)
    const run = peer.run({
      runId: `conformance-${++runNumber}-${++this.#runs}`,
      adapter: this.host.node.adapter.name,
      target,
      input: {
        kind: {
          case: "chat",
          value: {
            messages: [
              { role: 3, parts: [{ content: { case: "text", value: options.prompt ?? PROMPTS[kind] } }] }
            ]
          }
        },
        ...(options.parameters === undefined ? {} : { parameters: options.parameters })
      },
      stream: options.stream ?? true
    })
    run.acknowledges = options.acknowledges ?? true
    return run
  }

  #own(peer: EdgePeer): EdgePeer {
    this.after(() => peer.destroy())
    return peer
  }
}

/** Runs of all checks have ids of their own. */
let runNumber = 0
