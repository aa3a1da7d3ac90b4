// The relay over a real link: what a node in another process sends, through the edge's transport and runs, to readers
// in the edge's process. Events per second, then the delay that the edge adds at 1,000 runs of 20 events a second, and
// what an idle node and a quiet run cost in memory. docs/benchmarks.md says how to read it.
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { EdgeConfig } from "@iop/platform-common/config/EdgeConfig"
import { chatInput } from "@iop/platform-common/protocol/runInputText"
import { Context, Layer, Logger, ManagedRuntime, Schema } from "effect"
import { NodeConfigs } from "../src/node/NodeConfigs.ts"
import { NodeRegistry } from "../src/node/NodeRegistry.ts"
import { NodeStore } from "../src/node/NodeStore.ts"
import { Timers } from "../src/node/Timers.ts"
import { circuitLimits, runLimits } from "../src/run/limitsFromConfig.ts"
import type { RunReader } from "../src/run/RunReader.ts"
import { RunService } from "../src/run/RunService.ts"
import { NodeTransport } from "../src/transport/NodeTransport.ts"

const NODES = 2
const IDLE_NODES = 1000
const RUNS = 1000
const EVENTS_PER_SECOND = 20
const UNREAD_RUNS = 20
const THROUGHPUT_MS = 3000
const PACED_MS = 10_000

const PREFIX = "token-of-bench-node-"
const config = Schema.decodeUnknownSync(EdgeConfig)({
  listen: { nodes: { host: "127.0.0.1", port: 0 } },
  nodes: Array.from({ length: NODES + IDLE_NODES }, (_, i) => ({
    id: `n${i}`,
    alias: `n${i}`,
    token: `${PREFIX}${i}`,
    adapters: [{ name: "mock", type: "mock", slots: RUNS }]
  }))
})

const runtime = ManagedRuntime.make(
  NodeTransport.layer(config, {}).pipe(
    Layer.provideMerge(RunService.layer(runLimits(config))),
    Layer.provideMerge(NodeRegistry.layer(circuitLimits(config))),
    Layer.provideMerge(NodeConfigs.layer),
    Layer.provideMerge(NodeStore.layer(config)),
    Layer.provideMerge(Timers.layer),
    Layer.provideMerge(Logger.layer([]))
  )
)
const context = await runtime.context()
const runs = Context.get(context, RunService)
const registry = Context.get(context, NodeRegistry)
const { port } = Context.get(context, NodeTransport).address

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void
const memory = async () => {
  for (let i = 0; i < 3; i++) {
    collect()
    await wait(50)
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const script = fileURLToPath(new URL("./relay/node.ts", import.meta.url))
const pace = String(1000 / EVENTS_PER_SECOND)
const children = Array.from({ length: NODES }, (_, i) =>
  fork(script, [String(port), PREFIX, String(i), "1", pace])
)
const joined = async (count: number) => {
  while (registry.connected().filter((node) => node.status !== undefined).length < count) await wait(20)
}
await joined(NODES)

const submit = (target: string) =>
  runtime.runPromise(runs.submit({ adapter: "mock", target, input: chatInput("x"), caller: "bench" }))

/** Reads for as long as the run goes on. */
const drain = (reader: RunReader, onText: (text: string) => void) => {
  const read = () => {
    for (const { event } of reader.take()) if (event.type === "delta" && "text" in event) onText(event.text)
    if (!reader.done()) reader.onReady(read)
  }
  read()
}

const throughput = async () => {
  let events = 0
  const { reader } = await submit("flood")
  // A reader that is behind gets small pieces joined: what the node sent is counted by its text.
  drain(reader, (text) => {
    events += text.length / "hello".length
  })
  await wait(500)
  const from = { events, at: performance.now(), cpu: process.cpuUsage() }
  await wait(THROUGHPUT_MS)
  const seconds = (performance.now() - from.at) / 1000
  const { user, system } = process.cpuUsage(from.cpu)
  const many = events - from.events
  console.log(
    `one run as fast as its window lets it: ${Math.round(many / seconds).toLocaleString("en")} events/s, ` +
      `${(((user + system) / many) * 1000).toFixed(0)} ns of the edge's CPU per event`
  )
  reader.close()
  await wait(200)
}

const paced = async () => {
  const delays: Array<number> = []
  let counting = false
  const readers: Array<RunReader> = []
  for (let i = 0; i < RUNS; i++) {
    const { reader } = await submit("paced")
    readers.push(reader)
    drain(reader, (text) => {
      if (counting) delays.push(Number(process.hrtime.bigint() - BigInt(text)) / 1e6)
    })
  }
  await wait(1000)
  counting = true
  const from = { at: performance.now(), cpu: process.cpuUsage() }
  await wait(PACED_MS)
  counting = false
  const elapsed = performance.now() - from.at
  const { user, system } = process.cpuUsage(from.cpu)
  delays.sort((a, b) => a - b)
  const at = (share: number) => (delays[Math.floor(delays.length * share)] ?? Number.NaN).toFixed(2)
  console.log(
    `${RUNS} runs of ${EVENTS_PER_SECOND} events/s: ${Math.round((delays.length / elapsed) * 1000).toLocaleString("en")} events/s, ` +
      `node to reader p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, p99.9 ${at(0.999)} ms, ` +
      `${((user + system) / 10 / elapsed).toFixed(0)} % of a core`
  )
  for (const reader of readers) reader.close()
}

const costs = async () => {
  const before = await memory()
  const readers: Array<RunReader> = []
  for (let i = 0; i < RUNS; i++) readers.push((await submit("quiet")).reader)
  await wait(500)
  console.log(`a quiet run: ${(((await memory()) - before) / RUNS / 1024).toFixed(1)} KiB`)
  for (const reader of readers.splice(0)) reader.close()
  await wait(500)
  const unread = await memory()
  for (let i = 0; i < UNREAD_RUNS; i++) readers.push((await submit("flood")).reader)
  await wait(2000)
  console.log(
    `a flooding run that nobody reads: ${(((await memory()) - unread) / UNREAD_RUNS / 1024 / 1024).toFixed(1)} MiB of heap`
  )
  for (const reader of readers) reader.close()
  await wait(500)
  const without = await memory()
  children.push(fork(script, [String(port), PREFIX, String(NODES), String(IDLE_NODES)]))
  await joined(NODES + IDLE_NODES)
  await wait(1000)
  console.log(`an idle node: ${(((await memory()) - without) / IDLE_NODES / 1024).toFixed(1)} KiB`)
  const from = { at: performance.now(), cpu: process.cpuUsage() }
  await wait(10_000)
  const { user, system } = process.cpuUsage(from.cpu)
  console.log(
    `${IDLE_NODES} idle nodes: ${((user + system) / 10 / (performance.now() - from.at)).toFixed(1)} % of a core`
  )
}

await throughput()
await paced()
await costs()
for (const child of children) child.kill("SIGKILL")
await runtime.dispose()
process.exit(0)
