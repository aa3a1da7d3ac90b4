// The real edge as a process: started with a configuration of its own on free ports, reached through its sockets alone.
import { readFileSync } from "node:fs"
import { AdminClient } from "./AdminClient.ts"
import { ChildProcess } from "./ChildProcess.ts"
import { configText, type TestConfig } from "./config.ts"
import { Metrics } from "./Metrics.ts"
import type { Address } from "./RawHttp.ts"
import { RawNode, type RegisterOptions } from "./RawNode.ts"
import { edgeArgs } from "./runCommand.ts"
import { TempFolder } from "./TempFolder.ts"
import { eventually } from "./waiting.ts"

/** A line of the JSON log. */
export interface LogEntry {
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly line: string
}

export interface EdgeOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Sent as the API key of `admin`. */
  readonly key?: string
  /** How many descriptors the process may have. */
  readonly descriptors?: number
}

export class EdgeProcess extends ChildProcess {
  readonly configFile: string
  #nodes: Address | undefined
  #http: Address | undefined
  #ops: Address | undefined
  #admin: AdminClient | undefined

  private constructor(cleanup: AsyncDisposableStack, configFile: string, options: EdgeOptions) {
    const args = edgeArgs(["serve", "--config", configFile])
    super(cleanup, {
      name: "edge serve",
      ...(options.descriptors === undefined
        ? { args }
        : {
            executable: "/bin/sh",
            args: ["-c", `ulimit -n ${options.descriptors}; exec "$0" "$@"`, process.execPath, ...args]
          }),
      ...(options.env === undefined ? {} : { env: options.env })
    })
    this.configFile = configFile
  }

  /** Starts the edge and waits until it is ready. */
  static async start(
    cleanup: AsyncDisposableStack,
    config: TestConfig,
    options: EdgeOptions = {}
  ): Promise<EdgeProcess> {
    return EdgeProcess.startText(cleanup, configText(config), options)
  }

  static async startText(
    cleanup: AsyncDisposableStack,
    text: string,
    options: EdgeOptions = {}
  ): Promise<EdgeProcess> {
    const folder = new TempFolder(cleanup)
    const edge = new EdgeProcess(cleanup, folder.write("edge.yaml", text), options)
    edge.#nodes = await edge.#listener("nodes dial")
    edge.#http = await edge.#listener("http")
    edge.#ops = await edge.#listener("ops")
    edge.#admin = new AdminClient(urlOf(edge.http), urlOf(edge.ops), options.key)
    await eventually("the edge to be ready", async () => (await edge.admin.status("/readyz")) === 200)
    return edge
  }

  /** Where nodes dial in. */
  get nodes(): Address {
    return known(this.#nodes)
  }

  get http(): Address {
    return known(this.#http)
  }

  get ops(): Address {
    return known(this.#ops)
  }

  get admin(): AdminClient {
    return known(this.#admin)
  }

  /** A raw node that is registered, with its adapters ready. */
  async node(
    cleanup: AsyncDisposableStack,
    options: RegisterOptions & { readonly id: string }
  ): Promise<RawNode> {
    const node = await RawNode.register(cleanup, this.nodes, options)
    if (options.offers !== undefined) await this.admin.untilNode(options.id, "routable")
    return node
  }

  async metrics(): Promise<Metrics> {
    return new Metrics(await this.admin.metricsText())
  }

  /** Waits until the metrics are so. */
  async untilMetrics(what: string, holds: (metrics: Metrics) => boolean, boundMs?: number): Promise<Metrics> {
    return eventually(
      `metrics: ${what}`,
      async () => {
        const metrics = await this.metrics()
        return holds(metrics) ? metrics : undefined
      },
      boundMs
    )
  }

  /** The log so far. */
  get log(): ReadonlyArray<LogEntry> {
    return this.stderr.flatMap((line) => parseLog(line) ?? [])
  }

  /** The first entry of the log with the message and, where given, for which `where` holds. */
  async logged(
    message: string | RegExp,
    where: (entry: LogEntry) => boolean = () => true,
    boundMs?: number
  ): Promise<LogEntry> {
    return this.line(
      `a log line ${message}`,
      (line) => {
        const entry = parseLog(line)
        if (entry === undefined || !where(entry)) return undefined
        return (typeof message === "string" ? entry.message === message : message.test(entry.message))
          ? entry
          : undefined
      },
      boundMs
    )
  }

  /** Resident memory of the process in bytes. */
  get memory(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, "utf8")
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
  }

  /** A line of the startup screen: what, then where. */
  #listener(label: string): Promise<Address> {
    const pattern = new RegExp(`^\\s+${label}\\s+(?:http://)?(\\S+):(\\d+)$`)
    return this.line(`where ${label} listens`, (line) => {
      const match = pattern.exec(line)
      return match === null ? undefined : { host: match[1] ?? "", port: Number(match[2]) }
    })
  }
}

const known = <A>(value: A | undefined): A => {
  if (value === undefined) throw new Error("the edge has not started")
  return value
}

const urlOf = ({ host, port }: Address): string => `http://${host}:${port}`

const parseLog = (line: string): LogEntry | undefined => {
  if (!line.startsWith("{")) return undefined
  try {
    const value = JSON.parse(line) as { message?: unknown; annotations?: Record<string, unknown> }
    const parts = Array.isArray(value.message) ? value.message : [value.message]
    const fields = parts.filter(
      (part): part is Record<string, unknown> => typeof part === "object" && part !== null
    )
    return {
      message: parts.filter((part) => typeof part === "string").join(" "),
      fields: Object.assign({}, value, value.annotations, ...fields),
      line
    }
  } catch {
    return undefined
  }
}
