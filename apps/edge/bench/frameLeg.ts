// The frame leg: one process sends small run events, another receives and decodes them. Ours next to gRPC and
// WebSocket with the same protobuf payload, and to a floor that decodes nothing. docs/benchmarks.md says how to read it.
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { carriers } from "./frameLeg/carriers.ts"

const PER_TURN = [1, 8, 64]
const WARM_UP_MS = 700
const MEASURE_MS = 2000

const peer = fileURLToPath(new URL("./frameLeg/peer.ts", import.meta.url))

interface Answer {
  readonly port?: number
  readonly events?: number
  readonly cpuUs: number
  readonly at: number
}

const answer = (child: ChildProcess, ask = false): Promise<Answer> =>
  new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as Answer))
    child.once("exit", () => reject(new Error("a peer of the benchmark ended")))
    if (ask) child.send("figures")
  })

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const measure = async (name: string, perTurn: number) => {
  const start = async (role: "receive" | "send", port: number) => {
    const child = fork(peer, [role, name, String(port), String(perTurn)])
    return { child, port: (await answer(child)).port ?? 0 }
  }
  const first = carriers[name]?.listens ?? "receive"
  const listener = await start(first, 0)
  const dialler = await start(first === "receive" ? "send" : "receive", listener.port)
  const receiver = first === "receive" ? listener.child : dialler.child
  const sender = first === "receive" ? dialler.child : listener.child
  await wait(WARM_UP_MS)
  const [before, beforeSent] = await Promise.all([answer(receiver, true), answer(sender, true)])
  await wait(MEASURE_MS)
  const [after, afterSent] = await Promise.all([answer(receiver, true), answer(sender, true)])
  for (const child of [sender, receiver]) {
    child.removeAllListeners()
    child.kill("SIGKILL")
  }
  const events = (after.events ?? 0) - (before.events ?? 0)
  const perMillion = (us: number) => us / 1000 / (events / 1e6)
  return {
    perSecond: (events / (after.at - before.at)) * 1000,
    sendMs: perMillion(afterSent.cpuUs - beforeSent.cpuUs),
    receiveMs: perMillion(after.cpuUs - before.cpuUs)
  }
}

console.log(
  "| carrier | events per turn | events/s | sender, CPU ms per million | receiver, CPU ms per million |"
)
console.log("| --- | ---: | ---: | ---: | ---: |")
for (const perTurn of PER_TURN) {
  for (const name of Object.keys(carriers)) {
    const { perSecond, sendMs, receiveMs } = await measure(name, perTurn)
    console.log(
      `| ${name} | ${perTurn} | ${Math.round(perSecond).toLocaleString("en")} | ${Math.round(sendMs).toLocaleString("en")} | ${Math.round(receiveMs).toLocaleString("en")} |`
    )
  }
}
