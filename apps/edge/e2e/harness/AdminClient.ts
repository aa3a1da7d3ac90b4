// The admin API as a stranger sees it: plain fetch and JSON, no code or type of the edge.
import { SseParser } from "./SseParser.ts"
import { eventually } from "./waiting.ts"

/** An event of a run, as the API shows it. */
export interface ApiEvent {
  readonly seq: number
  readonly type: string
  readonly text?: string
  readonly node?: string
  readonly code?: string
  readonly message?: string
  readonly reason?: string
  readonly attempt?: number
}

export interface ApiRun {
  readonly id: string
  readonly phase: string
  readonly node?: string
  readonly attempt: number
  readonly events: number
  readonly slot_held: boolean
  readonly total_ms: number
  readonly failure?: { readonly code: string; readonly message: string; readonly retryable: boolean }
}

export interface ApiNode {
  readonly id: string
  readonly alias: string
  readonly state: string
  readonly reason: string
  readonly remote?: string
  readonly epoch?: number
  readonly agent?: string
  readonly slots_in_use: number
  readonly last_disconnect?: { readonly time: string; readonly reason: string }
  readonly adapters: ReadonlyArray<{
    readonly name: string
    readonly state: string
    readonly slots: { readonly total: number; readonly in_use: number }
    readonly circuit: { readonly state: string; readonly reason?: string; readonly retry_in_ms?: number }
  }>
}

export interface Submission {
  readonly adapter: string
  readonly target: string
  readonly prompt: string
  readonly stream?: boolean
  readonly detached?: boolean
  readonly timeout_ms?: number
  readonly labels?: Readonly<Record<string, string>>
}

export interface ApiError {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly retryAfter: string | undefined
}

/** The API refused. */
export class ApiRefusal extends Error {
  readonly problem: ApiError

  constructor(problem: ApiError) {
    super(`${problem.status} ${problem.code}: ${problem.message}`)
    this.problem = problem
  }
}

const ends = new Set(["completed", "failed", "cancelled"])

/** A run whose events are being read. */
export class ApiStream {
  readonly runId: string
  readonly events: Array<ApiEvent> = []
  /** Names of events that are no run events, such as `error`. */
  readonly errors: Array<string> = []
  /** Resolves when the stream is over: true when it ended in order, false when it was cut. */
  readonly over: Promise<boolean>
  /** Why it was cut, when it was. */
  cutBy: unknown
  readonly #abort: AbortController

  constructor(runId: string, response: Response, abort: AbortController) {
    this.runId = runId
    this.#abort = abort
    this.over = this.#read(response)
  }

  /** All text of the answer so far. */
  get text(): string {
    return this.events.map((event) => event.text ?? "").join("")
  }

  get terminals(): ReadonlyArray<ApiEvent> {
    return this.events.filter((event) => ends.has(event.type))
  }

  /** The events until the end; fails when the stream ends without a terminal event or with more than one. */
  async finish(): Promise<ApiEvent> {
    await this.over
    const [last, ...more] = this.terminals
    if (last === undefined || more.length > 0) {
      throw new Error(`run ${this.runId} ended with ${this.terminals.length} terminal events: ${this.errors}`)
    }
    return last
  }

  /** The first event of the type, now or when it comes. */
  async until(type: string, boundMs?: number): Promise<ApiEvent> {
    return eventually(
      `event ${type} of run ${this.runId}`,
      () => this.events.find((event) => event.type === type),
      boundMs
    )
  }

  /** Hangs up. */
  leave(): void {
    this.#abort.abort()
  }

  async #read(response: Response): Promise<boolean> {
    const parser = new SseParser()
    let taken = 0
    try {
      for await (const chunk of response.body ?? []) {
        parser.push(chunk)
        for (; taken < parser.events.length; taken++) {
          const event = parser.events[taken]!
          if (event.name === "message") this.events.push(JSON.parse(event.data) as ApiEvent)
          else this.errors.push(event.data)
        }
      }
      return true
    } catch (error) {
      this.cutBy = error
      return false
    }
  }
}

export class AdminClient {
  readonly #base: string
  readonly #ops: string
  readonly #headers: Readonly<Record<string, string>>

  /** Base URLs of the two listeners, without a slash at the end. */
  constructor(base: string, ops: string, key?: string) {
    this.#base = base
    this.#ops = ops
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  }

  get base(): string {
    return this.#base
  }

  async nodes(): Promise<ReadonlyArray<ApiNode>> {
    return (await this.#json<{ nodes: ReadonlyArray<ApiNode> }>("GET", "/admin/v1/nodes")).nodes
  }

  async node(name: string): Promise<ApiNode> {
    return this.#json("GET", `/admin/v1/nodes/${name}`)
  }

  async runs(query = ""): Promise<ReadonlyArray<ApiRun>> {
    return (await this.#json<{ runs: ReadonlyArray<ApiRun> }>("GET", `/admin/v1/runs${query}`)).runs
  }

  async run(id: string): Promise<ApiRun> {
    return this.#json("GET", `/admin/v1/runs/${id}`)
  }

  async cancel(id: string): Promise<ApiRun> {
    return this.#json("POST", `/admin/v1/runs/${id}/cancel`, {})
  }

  async explain(adapter: string, target: string) {
    return this.#json<{
      readonly chosen?: string
      readonly otherwise?: { readonly waits: boolean; readonly code?: string; readonly message?: string }
      readonly nodes: ReadonlyArray<{
        readonly node: string
        readonly alias: string
        readonly chosen: boolean
        readonly reason: string
        readonly message: string
      }>
    }>("POST", "/admin/v1/explain", { adapter, target })
  }

  /** Submits a run that goes on by itself. */
  async submit(submission: Submission): Promise<ApiRun> {
    return this.#json("POST", "/admin/v1/runs", submission)
  }

  /** Submits a run and reads its events; it belongs to the stream. Throws `ApiRefusal`. */
  async stream(submission: Submission): Promise<ApiStream> {
    return this.#stream("POST", "/admin/v1/runs?events=true", submission)
  }

  /** Watches the events of a run. */
  async watch(id: string, after = 0): Promise<ApiStream> {
    return this.#stream("GET", `/admin/v1/runs/${id}/events?after=${after}`)
  }

  /** Waits until the node is in the state. */
  async untilNode(name: string, state: string, boundMs?: number): Promise<ApiNode> {
    let last = ""
    return eventually(
      `node ${name} to be ${state}`,
      async () => {
        const node = await this.node(name)
        last = `${node.state}: ${node.reason}`
        if (node.state === state) return node
        throw new Error(`it is ${last}`)
      },
      boundMs
    )
  }

  /** Waits until the run is in one of the phases. */
  async untilRun(id: string, phases: ReadonlyArray<string>, boundMs?: number): Promise<ApiRun> {
    return eventually(
      `run ${id} to be ${phases.join(" or ")}`,
      async () => {
        const run = await this.run(id)
        if (phases.includes(run.phase)) return run
        throw new Error(`it is ${run.phase}`)
      },
      boundMs
    )
  }

  async status(path: string): Promise<number> {
    const response = await fetch(`${this.#ops}${path}`)
    await response.arrayBuffer()
    return response.status
  }

  /** The metrics page. */
  async metricsText(): Promise<string> {
    return (await fetch(`${this.#ops}/metrics`)).text()
  }

  async #json<A>(method: string, path: string, body?: unknown): Promise<A> {
    const response = await this.#fetch(method, path, body, undefined)
    return (await response.json()) as A
  }

  async #stream(method: string, path: string, body?: unknown): Promise<ApiStream> {
    const abort = new AbortController()
    const response = await this.#fetch(method, path, body, abort.signal)
    const runId = response.headers.get("x-iop-run-id") ?? ""
    return new ApiStream(runId, response, abort)
  }

  async #fetch(method: string, path: string, body: unknown, signal: AbortSignal | undefined) {
    const response = await fetch(`${this.#base}${path}`, {
      method,
      headers: {
        ...this.#headers,
        ...(body === undefined ? {} : { "content-type": "application/json" })
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal })
    })
    if (response.ok) return response
    const text = await response.text()
    let error: { code?: string; message?: string } = {}
    try {
      error = (JSON.parse(text) as { error?: typeof error }).error ?? {}
    } catch {
      error = { message: text }
    }
    throw new ApiRefusal({
      status: response.status,
      code: error.code ?? "",
      message: error.message ?? "",
      retryAfter: response.headers.get("retry-after") ?? undefined
    })
  }
}
