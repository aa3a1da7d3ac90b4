// What a run costs inside the edge, without sockets: selection, a whole one-token run, and the relay. Run with
// `pnpm bench`; figures differ between machines, ratios hold.
import { chatInput } from "@iop/platform-common/protocol/runInputText"
import { Effect, Layer, Logger } from "effect"
import { NodeRegistry } from "../src/node/NodeRegistry.ts"
import { select } from "../src/node/selection.ts"
import { RunService } from "../src/run/RunService.ts"
import { completed, entry, FakeLink, join, record, started, status, text } from "../test/fakeNodes.ts"
import { fixture } from "../test/runFixture.ts"

const report = (what: string, count: number, ms: number, unit: string) =>
  console.log(
    `${what.padEnd(52)} ${((count / ms) * 1000).toFixed(0).padStart(12)} ${unit}/s ${((ms * 1000) / count).toFixed(2).padStart(10)} µs each`
  )

const selection = () => {
  const nodes = Array.from({ length: 1000 }, (_, i) => {
    const node = entry(`n${i}`)
    node.link = new FakeLink()
    node.status = status(["echo"])
    return node
  })
  const need = { adapter: "mock", target: "echo" }
  const clock = { now: 0, resumeGraceMs: 30_000 }
  const rounds = 20_000
  for (let i = 0; i < 1000; i++) select(nodes, need, clock)
  const before = performance.now()
  for (let i = 0; i < rounds; i++) select(nodes, need, clock)
  report("selection among 1,000 nodes", rounds, performance.now() - before, "selections")
}

const ids = Array.from({ length: 8 }, (_, i) => `n${i}`)

const dispatch = Effect.gen(function* () {
  const registry = yield* NodeRegistry
  const runs = yield* RunService
  const links = ids.map((id) => join(registry, id))
  const input = chatInput("hello")
  const one = Effect.gen(function* () {
    const { reader } = yield* runs.submit({ adapter: "mock", target: "echo", input, caller: "bench" })
    for (const link of links) {
      for (const sent of link.sent.splice(0)) link.say(sent, started, text("token"), completed)
    }
    while (!reader.done()) reader.take()
  })
  const rounds = 20_000
  yield* Effect.repeat(one, { times: 2000 })
  const before = performance.now()
  for (let i = 0; i < rounds; i++) yield* one
  report("a one-token run against 8 nodes", rounds, performance.now() - before, "runs")
})

const relay = Effect.gen(function* () {
  const registry = yield* NodeRegistry
  const runs = yield* RunService
  const link = join(registry, "n0") // the only one that can take it
  for (const id of ids.slice(1)) registry.setCordoned(registry.entry(id)!, true)
  const { reader } = yield* runs.submit({
    adapter: "mock",
    target: "echo",
    input: chatInput("x"),
    caller: "bench"
  })
  link.say(link.last, started)
  const token = text("token")
  for (const perRead of [1, 8, 64]) {
    const batch = Array.from({ length: perRead }, () => token)
    const rounds = Math.floor(2_000_000 / (perRead + 3))
    const before = performance.now()
    for (let i = 0; i < rounds; i++) {
      link.say(link.last, ...batch)
      reader.take()
    }
    report(
      `events through a run to its reader, ${perRead} per read`,
      rounds * perRead,
      performance.now() - before,
      "events"
    )
  }
  reader.close()
})

selection()
const quiet = fixture(
  ids.map((id) => record(id)),
  { runWindowBytes: 262_144, relay: { logBytes: 1 << 20, consumerMs: 30_000 } }
)
await Effect.runPromise(
  Effect.andThen(dispatch, relay).pipe(Effect.provide(Layer.provideMerge(quiet, Logger.layer([]))))
)
