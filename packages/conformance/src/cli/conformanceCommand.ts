// `conformance`: which side is judged, and with what.
import { randomBytes } from "node:crypto"
import { Data, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { judge } from "../judge.ts"
import { NotTestable } from "../outcomes.ts"
import { Admin } from "../peer/Admin.ts"
import type { Extra, RuleResult } from "../Rule.ts"
import { edgeRules } from "../rules/edge/edgeRules.ts"
import { nodeRules } from "../rules/node/nodeRules.ts"
import { type Address, parseAddress } from "../trial/Address.ts"
import { EdgeTrial, type EdgeUnderTest } from "../trial/EdgeTrial.ts"
import { NodeHost, NodeTrial } from "../trial/NodeTrial.ts"
import { adapterConfig } from "./adapterConfig.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { readToken } from "./readToken.ts"
import { countLine, countOf, lineOf } from "./report.ts"

/** Version of the kit. */
export const VERSION = "0.1.0"

/** How long a node may take to dial for the first time when a person starts it, in milliseconds. */
const FIRST_DIAL_MS = 600_000
/** The same for a process that the kit starts. */
const STARTED_DIAL_MS = 30_000
/** How long the other side may take to answer by default, in seconds. */
const PATIENCE_SECONDS = 5

const text = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description))

const flags = {
  edge: text("edge", "HOST:PORT", "judge the edge that listens for nodes there").pipe(Flag.optional),
  listen: text(
    "listen",
    "PORT",
    "judge the node that dials this port, or HOST:PORT; the host is 127.0.0.1 unless given"
  ).pipe(Flag.optional),
  token: text(
    "token",
    "TOKEN",
    "the node's token; visible to others, better IOP_NODE_TOKEN or --token-file"
  ).pipe(Flag.optional),
  tokenFile: Flag.File("token-file").pipe(Flag.withDescription("file with the node's token"), Flag.optional),
  admin: text(
    "admin",
    "URL",
    "with --edge: the edge's admin API, which submits runs; its key is IOP_EDGE_KEY"
  ).pipe(Flag.optional),
  adapter: text(
    "adapter",
    "NAME",
    "the adapter; by default mock, with --edge the first of the configuration"
  ).pipe(Flag.optional),
  target: text(
    "target",
    "NAME",
    "with --edge: the target to offer; with --listen: one that answers with its prompt"
  ).pipe(Flag.optional),
  count: text(
    "count",
    "NAME",
    "with --listen: a target that answers in many pieces; empty: there is none"
  ).pipe(Flag.withDefault("count")),
  never: text("never", "NAME", "with --listen: a target that never answers; empty: there is none").pipe(
    Flag.withDefault("never")
  ),
  flood: text(
    "flood",
    "NAME",
    "with --listen: a target with some 100 kB of answer in small pieces; empty: there is none"
  ).pipe(Flag.withDefault("flood")),
  adapterConfig: text(
    "adapter-config",
    "JSON",
    "with --listen: the adapter's iop.v1.AdapterConfig in JSON; default: mock"
  ).pipe(Flag.optional),
  only: text(
    "only",
    "RULE",
    "a rule, such as R-FRAME-3, or the beginning of several, such as R-REG; may be repeated"
  ).pipe(Flag.atLeast(0)),
  slow: Flag.Boolean("slow").pipe(
    Flag.withDescription("also the checks that take 10 s to 60 s by the rules themselves"),
    Flag.withDefault(false)
  ),
  strict: Flag.Boolean("strict").pipe(
    Flag.withDescription(
      "with --listen: also the checks of bytes that a node may leave to its protobuf library"
    ),
    Flag.withDefault(false)
  ),
  patience: Flag.Int("patience").pipe(
    Flag.withMetavar("SECONDS"),
    Flag.withDescription("how long the other side may take to answer"),
    Flag.withDefault(PATIENCE_SECONDS)
  ),
  json: Flag.Boolean("json").pipe(Flag.withDescription("print one JSON document"), Flag.withDefault(false)),
  command: Argument.String("command").pipe(
    Argument.withDescription("with --listen, after --: starts the node; {edge} in it becomes HOST:PORT"),
    Argument.variadic()
  )
}

interface Input {
  readonly edge: string | undefined
  readonly listen: string | undefined
  readonly token: string | undefined
  readonly admin: string | undefined
  readonly adapter: string | undefined
  readonly target: string | undefined
  readonly count: string
  readonly never: string
  readonly flood: string
  readonly adapterConfig: string | undefined
  readonly only: ReadonlyArray<string>
  readonly extras: ReadonlyArray<Extra>
  readonly patienceMs: number
  readonly json: boolean
  readonly command: ReadonlyArray<string>
}

/** Something that must not happen. */
class InternalError extends Data.TaggedError("InternalError")<{ readonly cause: unknown }> {
  override get message() {
    return String(this.cause)
  }
}

/** The command. Exit codes: 0 all good, 1 a rule is broken, 2 wrong usage, 3 cannot reach what is to be judged. */
export const conformanceCommand = Command.make("conformance", flags, (given) =>
  Effect.tryPromise({
    try: async () => {
      const tokenFile = Option.getOrUndefined(given.tokenFile)
      const token = readToken(
        { token: Option.getOrUndefined(given.token), file: tokenFile },
        process.env,
        say
      )
      if (!(given.patience >= 1)) throw usage("--patience is at least 1")
      const input: Input = {
        edge: Option.getOrUndefined(given.edge),
        listen: Option.getOrUndefined(given.listen),
        token,
        admin: Option.getOrUndefined(given.admin),
        adapter: Option.getOrUndefined(given.adapter),
        target: Option.getOrUndefined(given.target),
        count: given.count,
        never: given.never,
        flood: given.flood,
        adapterConfig: Option.getOrUndefined(given.adapterConfig),
        only: given.only,
        extras: [...(given.slow ? (["slow"] as const) : []), ...(given.strict ? (["strict"] as const) : [])],
        patienceMs: given.patience * 1000,
        json: given.json,
        command: given.command
      }
      if ((input.edge === undefined) === (input.listen === undefined)) {
        throw usage("say what to judge: --edge HOST:PORT for an edge, --listen PORT for a node")
      }
      const results = input.edge === undefined ? await judgeNode(input) : await judgeEdge(input, input.edge)
      if (results.length === 0) throw usage(`--only ${input.only.join(" ")}: there is no such rule`)
      const count = countOf(results)
      write(input.json ? JSON.stringify({ ...count, rules: results }, undefined, 2) : countLine(count))
      if (count.failed > 0) throw new CommandFailed({ exitCode: 1, message: "" })
    },
    // Anything else is a defect of the kit.
    catch: (error) => (error instanceof CommandFailed ? error : new InternalError({ cause: error }))
  })
).pipe(
  Command.withDescription(
    "Judges an edge or a node by the rules of the node protocol: one line per rule, exit code 1 if one is broken"
  )
)

const write = (line: string): void => {
  process.stdout.write(`${line}\n`)
}
const say = (line: string): void => {
  process.stderr.write(`conformance: ${line}\n`)
}
const usage = (message: string): CommandFailed => new CommandFailed({ exitCode: 2, message })

/** Prints lines as they come, unless one document is wanted. */
const onResult = (input: Input) => (result: RuleResult) => {
  if (!input.json) write(lineOf(result))
}

const addressOf = (flag: string, value: string): Address => {
  const address = parseAddress(value)
  if (address === undefined) throw usage(`${flag}: ${JSON.stringify(value)} is no HOST:PORT`)
  return address
}

const judgeEdge = async (input: Input, at: string): Promise<ReadonlyArray<RuleResult>> => {
  if (input.command.length > 0) throw usage("a command to start is for --listen")
  const { token } = input
  if (token === undefined) throw usage("no token: set IOP_NODE_TOKEN, or name a file with --token-file")
  const edge: EdgeUnderTest = {
    address: addressOf("--edge", at),
    token,
    secondToken: process.env["IOP_SECOND_NODE_TOKEN"]?.trim() || undefined,
    admin: input.admin === undefined ? undefined : new Admin(input.admin, process.env["IOP_EDGE_KEY"]),
    adapter: input.adapter,
    target: input.target,
    patienceMs: input.patienceMs
  }
  await reach(edge)
  return judge({
    ...input,
    rules: edgeRules,
    trial: (cleanup) => new EdgeTrial(edge, cleanup),
    onResult: onResult(input)
  })
}

/** Fails unless the edge takes the token, and its admin API answers. */
const reach = async (edge: EdgeUnderTest): Promise<void> => {
  await using cleanup = new AsyncDisposableStack()
  const trial = new EdgeTrial(edge, cleanup)
  try {
    const peer = await trial.register()
    if (edge.admin !== undefined) {
      const { adapter, target } = trial.offer(peer)
      await edge.admin.chosen(adapter, target)
    }
  } catch (error) {
    if (error instanceof NotTestable) return
    const why = error instanceof Error ? error.message : String(error)
    throw new CommandFailed({ exitCode: 3, message: `the edge cannot be judged: ${why}` })
  }
}

const judgeNode = async (input: Input): Promise<ReadonlyArray<RuleResult>> => {
  if (input.admin !== undefined) throw usage("--admin is for --edge")
  const { count, flood, never, listen = "" } = input
  const targets = { echo: input.target ?? "echo", count, never, flood }
  const token = input.token ?? randomBytes(32).toString("base64url")
  const host = await open({
    listen: /^\d{1,5}$/.test(listen)
      ? { host: "127.0.0.1", port: Number(listen) }
      : addressOf("--listen", listen),
    token,
    command: input.command.length === 0 ? undefined : input.command,
    adapter: adapterConfig(input.adapter ?? "mock", targets, input.adapterConfig),
    targets,
    patienceMs: input.patienceMs,
    firstDialMs: input.command.length === 0 ? FIRST_DIAL_MS : STARTED_DIAL_MS
  })
  try {
    if (input.command.length === 0) {
      const { host: name, port } = host.address
      say(
        `listening; start the node for edge ${name}:${port}${input.token === undefined ? ` with token ${token}` : ""}`
      )
      // Nothing is judged before the node is there.
      await host.arrival().catch((error: unknown) => {
        throw new CommandFailed({
          exitCode: 3,
          message: error instanceof Error ? error.message : String(error)
        })
      })
    }
    return await judge({
      ...input,
      rules: nodeRules,
      trial: (cleanup) => new NodeTrial(host, cleanup),
      onResult: onResult(input)
    })
  } finally {
    await host.close()
  }
}

const open = async (node: NodeHost["node"]): Promise<NodeHost> => {
  try {
    return await NodeHost.listen(node)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CommandFailed({ exitCode: 3, message: `cannot listen: ${why}` })
  }
}
