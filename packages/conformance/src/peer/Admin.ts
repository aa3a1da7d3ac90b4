// The admin API of an edge as a stranger sees it: who submits the runs that a check needs. No code or type of the edge.
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http"
import { RuleBroken } from "../outcomes.ts"

/** A run as the API shows it. */
export interface AdminRun {
  readonly id: string
  readonly phase: string
  readonly attempt: number
  readonly finish_reason?: string
  readonly failure?: { readonly code: string; readonly message: string; readonly retryable: boolean }
}

/** An event of a run as the API shows it. */
export interface AdminEvent {
  readonly type: string
  readonly text?: string
}

/** What is asked of the edge. */
export interface Submission {
  readonly adapter: string
  readonly target: string
  readonly prompt: string
  readonly stream?: boolean
}

const over = new Set(["completed", "failed", "cancelled"])
/** How often the state of a run is looked at, in milliseconds. */
const LOOK_MS = 20

/** A client of one edge's admin API. */
export class Admin {
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>

  /** @param base such as http://127.0.0.1:7611 */
  constructor(base: string, key: string | undefined) {
    this.#base = base.replace(/\/+$/, "")
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  }

  /** Submits a run that goes on by itself. */
  async submit(submission: Submission): Promise<AdminRun> {
    return this.#json("POST", "/admin/v1/runs", submission)
  }

  async run(id: string): Promise<AdminRun> {
    return this.#json("GET", `/admin/v1/runs/${id}`)
  }

  async cancel(id: string): Promise<AdminRun> {
    return this.#json("POST", `/admin/v1/runs/${id}/cancel`, {})
  }

  async drain(node: string): Promise<void> {
    await this.#json("POST", `/admin/v1/nodes/${node}/drain`, {})
  }

  async uncordon(node: string): Promise<void> {
    await this.#json("POST", `/admin/v1/nodes/${node}/uncordon`, {})
  }

  /** Alias of the node that would get a run now. */
  async chosen(adapter: string, target: string): Promise<string | undefined> {
    const { chosen } = await this.#json<{ readonly chosen?: string }>("POST", "/admin/v1/explain", {
      adapter,
      target
    })
    return chosen
  }

  /** Waits until `look` gives something; fails with what it saw last. */
  async until<A>(
    what: string,
    look: () => Promise<{ readonly found?: A | undefined; readonly seen: string }>,
    boundMs: number
  ): Promise<A> {
    const end = performance.now() + boundMs
    while (true) {
      const { found, seen } = await look()
      if (found !== undefined) return found
      if (performance.now() > end) throw new RuleBroken(what, `${seen}, after ${boundMs} ms`)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }

  /** Waits until the run is over. */
  async ended(id: string, boundMs: number): Promise<AdminRun> {
    return this.until(
      `the end of run ${id}`,
      async () => {
        const run = await this.run(id)
        return { found: over.has(run.phase) ? run : undefined, seen: `a run that is ${run.phase}` }
      },
      boundMs
    )
  }

  /** The events of a run that is over. */
  async events(id: string): Promise<ReadonlyArray<AdminEvent>> {
    const response = await this.#fetch("GET", `/admin/v1/runs/${id}/events?after=0`)
    return (await response.text())
      .split("\n")
      .filter((line) => line.startsWith("data:"))
      .map((line) => JSON.parse(line.slice("data:".length)) as AdminEvent)
  }

  /** Submits a run whose caller never reads its events. Hanging up cancels the run. */
  async submitUnread(submission: Submission): Promise<{ readonly id: string; readonly hangUp: () => void }> {
    return new Promise((resolve, reject) => {
      const outgoing: ClientRequest = httpRequest(
        `${this.#base}/admin/v1/runs?events=true`,
        { method: "POST", headers: { ...this.#headers, "content-type": "application/json" } },
        (response: IncomingMessage) => {
          response.pause()
          response.on("error", () => undefined)
          const id = response.headers["x-iop-run-id"]
          if (typeof id === "string") resolve({ id, hangUp: () => outgoing.destroy() })
          else reject(new Error(`the admin API answered ${response.statusCode} without a run`))
        }
      )
      outgoing.on("error", reject)
      outgoing.end(JSON.stringify(submission))
    })
  }

  async #json<A>(method: string, path: string, body?: unknown): Promise<A> {
    return (await (await this.#fetch(method, path, body)).json()) as A
  }

  async #fetch(method: string, path: string, body?: unknown): Promise<Response> {
    const response = await fetch(`${this.#base}${path}`, {
      method,
      headers: { ...this.#headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    if (response.ok) return response
    throw new Error(
      `${method} ${path} of the admin API: ${response.status} ${(await response.text()).slice(0, 300)}`
    )
  }
}
