// A crowd of nodes on one edge: what they cost, and what happens when the edge dies under them or everything stands still.
// LK6 and ED4 with the SDK's own nodes, a few hundred of them in processes of their own; a thousand with IOP_E2E_FULL=1.
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ChildProcess } from "./harness/ChildProcess.ts"
import { mockNodeConfig, type TestConfig, tokenOf } from "./harness/config.ts"
import { EdgeProcess } from "./harness/EdgeProcess.ts"
import { processorMs } from "./harness/processFigures.ts"
import { eventually } from "./harness/waiting.ts"

const NODES = process.env.IOP_E2E_FULL === "1" ? 1_000 : 300
const PROCESSES = 2
const DOWN_MS = 2_000
const HEARTBEAT_MS = 1_000
const DEAD_MS = 3 * HEARTBEAT_MS
const MB = 1024 * 1024
const MAIN = fileURLToPath(new URL("../../mock-node/src/testing/nodeCrowd.ts", import.meta.url))

const config: TestConfig = {
  nodes: Array.from({ length: NODES }, (_, number) => mockNodeConfig(`n${number}`)),
  link: { heartbeat_interval: `${HEARTBEAT_MS}ms` },
  log: { level: "warn" }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

describe(`${NODES} nodes on one edge`, () => {
  const whole = new AsyncDisposableStack()
  const crowds: Array<ChildProcess> = []
  let edge: EdgeProcess
  let memoryBefore = 0

  const routable = async () => (await edge.metrics()).count("iop_edge_nodes", { state: "routable" })
  const untilRoutable = (count: number, boundMs = 60_000) =>
    eventually(
      `${count} routable nodes`,
      async () => {
        const now = await routable()
        if (now >= count) return true
        throw new Error(`there are ${now}`)
      },
      boundMs
    )

  beforeAll(async () => {
    edge = await EdgeProcess.start(whole, config)
    memoryBefore = edge.memory
    const share = NODES / PROCESSES
    for (let index = 0; index < PROCESSES; index++) {
      crowds.push(
        new ChildProcess(whole, {
          name: `crowd ${index}`,
          args: [
            MAIN,
            `${edge.nodes.host}:${edge.nodes.port}`,
            String(index * share),
            String(share),
            tokenOf("n#")
          ]
        })
      )
    }
    await untilRoutable(NODES)
  })

  afterAll(() => whole.disposeAsync())

  it("cost little memory and little of a processor while they are idle", async () => {
    const perNode = (edge.memory - memoryBefore) / NODES
    const frames = async () =>
      (await edge.metrics()).count("iop_edge_link_frames_total", { direction: "out" })
    const sent = await frames()
    const [cpu, start] = [processorMs(edge.pid), performance.now()]
    // Nobody asks it anything meanwhile: that would be what is measured.
    await pause(4 * HEARTBEAT_MS)
    const share = (processorMs(edge.pid) - cpu) / (performance.now() - start)
    expect(await frames()).toBeGreaterThanOrEqual(sent + 3 * NODES)
    console.log(
      `${NODES} idle nodes: ${Math.round(perNode / 1024)} KB each, ` +
        `${(share * 100).toFixed(1)} % of a core with a heartbeat every ${HEARTBEAT_MS} ms`
    )
    expect(perNode).toBeLessThan(400 * 1024)
    expect(share).toBeLessThan(0.8)
  })

  it("LK5 are all there, on the same links, after the edge stood still for more than a heartbeat", async () => {
    const before = await edge.admin.nodes()
    edge.signal("SIGSTOP")
    // With a whole one before it and a part of one after it, the nodes are just short of giving the edge up.
    await pause(1.4 * HEARTBEAT_MS)
    edge.signal("SIGCONT")
    await stayTheSame(before)
  })

  it("LK5 are all there, on the same links, after the whole machine stood still for longer than a link may be silent", async () => {
    const before = await edge.admin.nodes()
    for (const child of [...crowds, edge]) child.signal("SIGSTOP")
    await pause(DEAD_MS + HEARTBEAT_MS)
    for (const child of [edge, ...crowds]) child.signal("SIGCONT")
    await stayTheSame(before)
  })

  /** After several more heartbeats each node has the link that it had. */
  const stayTheSame = async (before: Awaited<ReturnType<typeof edge.admin.nodes>>) => {
    const sent = (await edge.metrics()).count("iop_edge_link_frames_total", { direction: "in" })
    await eventually(
      "four pongs of each node",
      async () =>
        (await edge.metrics()).count("iop_edge_link_frames_total", { direction: "in" }) >= sent + 4 * NODES
    )
    await untilRoutable(NODES)
    const after = new Map((await edge.admin.nodes()).map(({ epoch, id }) => [id, epoch]))
    for (const { epoch, id } of before) expect(after.get(id), id).toBe(epoch)
    expect((await edge.metrics()).count("iop_edge_links_ended_total")).toBe(0)
  }

  it("LK6 come back within ten seconds when the edge is killed and restarted, spread evenly and without a peak", async () => {
    const steady = edge.memory
    const { http, nodes, ops } = edge
    await edge.kill()
    await pause(DOWN_MS)
    edge = await EdgeProcess.start(whole, {
      ...config,
      listen: { nodes: { port: nodes.port }, http: { port: http.port }, ops: { port: ops.port } }
    })
    const start = performance.now()
    const dials: Array<{ readonly ms: number; readonly count: number }> = []
    let peak = 0
    await eventually(
      "99 of 100 nodes to be routable",
      async () => {
        const metrics = await edge.metrics()
        dials.push({ ms: performance.now(), count: metrics.count("iop_edge_link_connections_total") })
        peak = Math.max(peak, edge.memory)
        const now = metrics.count("iop_edge_nodes", { state: "routable" })
        if (now >= NODES * 0.99) return true
        throw new Error(`there are ${now}`)
      },
      40_000
    )
    const ms = performance.now() - start
    const mean = ((dials.at(-1)?.count ?? 0) - (dials[0]?.count ?? 0)) / (ms / 1000)
    const fastest = peakRate(dials)
    console.log(
      `${NODES} nodes after ${DOWN_MS} ms without an edge: 99 % routable after ${(ms / 1000).toFixed(1)} s, ` +
        `at most ${Math.round(fastest)} dials a second (mean ${Math.round(mean)}), ` +
        `memory at most ${Math.round(peak / MB)} MB (steady ${Math.round(steady / MB)} MB)`
    )
    // The promise is ten seconds, at most three times the mean and twice the memory; a busy machine gets a little more.
    expect(ms).toBeLessThan(30_000)
    expect(fastest).toBeLessThan(mean * 6)
    expect(peak).toBeLessThan(steady * 2)
    await untilRoutable(NODES, 60_000)
    for (const crowd of crowds) {
      expect(crowd.exit).toBeUndefined()
      expect(crowd.stderr).toEqual([])
    }
  })

  it("ED1 let the edge end at once, and ask for it again afterwards", async () => {
    const { code, ms } = await edge.stop("SIGTERM")
    expect(code).toBe(0)
    console.log(`the edge ended after ${Math.round(ms)} ms with ${NODES} idle nodes`)
    expect(ms).toBeLessThan(20_000)
    for (const crowd of crowds) expect(crowd.exit).toBeUndefined()
  })
})

/** The most connections within a second, by samples that come more often than that. */
const peakRate = (samples: ReadonlyArray<{ readonly ms: number; readonly count: number }>): number => {
  let peak = 0
  for (const [index, { count, ms }] of samples.entries()) {
    const end = samples.slice(index).findLast((sample) => sample.ms <= ms + 1_000)
    if (end !== undefined) peak = Math.max(peak, end.count - count)
  }
  return peak
}
