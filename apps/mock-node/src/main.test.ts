// The fake node as a process, on a scripted edge over real TCP.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { tcpEdge } from "@iop/node-sdk/testkit/scriptedEdge"
import { GoodbyeCode } from "@iop/platform-common/gen/iop/v1/frame_pb"
import { RejectCode } from "@iop/platform-common/gen/iop/v1/register_pb"
import { Effect } from "effect"
import { mockProcess } from "../test/mockProcess.ts"

const TOKEN = "tok-7f3a-very-secret"

const config = {
  runtime: { drainTimeoutMs: 20_000 },
  adapters: [{ name: "mock", slots: 8, settings: { case: "mock" as const, value: { seed: 1n } } }]
}

const started = (args: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const edge = yield* tcpEdge()
    const node = yield* mockProcess(["--edge", `${edge.host}:${edge.port}`, "--name", "n1", ...args], {
      IOP_NODE_TOKEN: TOKEN
    })
    const link = yield* edge.link
    return { edge, link, node }
  })

describe("the process", () => {
  it.live("registers, runs, and on SIGTERM lets its run finish, says goodbye and exits with 0", () =>
    Effect.gen(function* () {
      const { link, node } = yield* started()
      const request = yield* link.accept({ config })
      assert.strictEqual(request.token, TOKEN)
      assert.deepStrictEqual([request.agentName, request.adapterKinds], ["mock-node", ["mock"]])
      yield* link.ready
      const run = link.run({ adapter: "mock", target: "never" })
      yield* link.ping
      node.kill("SIGTERM")
      yield* link.statusWhere((status) => status.draining)
      link.cancel(run)
      assert.strictEqual((yield* run.toEnd).at(-1)?.type, "cancelled")
      assert.strictEqual((yield* link.goodbye).code, GoodbyeCode.SHUTDOWN)
      assert.strictEqual(yield* node.exited, 0)
      assert.notInclude(node.lines.join("\n"), TOKEN)
      assert.isTrue(node.lines.every((line) => JSON.parse(line).name === "n1"))
    })
  )

  it.live("exits with 0 although a run ignores everything", () =>
    Effect.gen(function* () {
      const { link, node } = yield* started()
      yield* link.accept({ config: { ...config, runtime: { drainTimeoutMs: 50 } } })
      yield* link.ready
      const run = link.run({
        adapter: "mock",
        target: "never",
        input: '{"ignore_cancel": true, "start": true}'
      })
      yield* run.next
      node.kill("SIGTERM")
      assert.strictEqual((yield* link.goodbye).code, GoodbyeCode.SHUTDOWN)
      assert.strictEqual(yield* node.exited, 0)
    })
  )

  it.live("ends with 2 and a sentence when it is not told where the edge is", () =>
    Effect.gen(function* () {
      const node = yield* mockProcess([], { IOP_NODE_TOKEN: TOKEN })
      assert.strictEqual(yield* node.exited, 2)
      assert.deepStrictEqual(node.lines, ["Missing required flag: --edge", "See mock-node --help"])
    })
  )

  it.live("drains when its commands end, so that nobody's child is left behind", () =>
    Effect.gen(function* () {
      const { link, node } = yield* started(["--control"])
      yield* link.accept({ config })
      yield* link.ready
      node.endInput()
      assert.strictEqual((yield* link.goodbye).code, GoodbyeCode.SHUTDOWN)
      assert.strictEqual(yield* node.exited, 0)
    })
  )

  it.live("RG3 says that its token is refused, not what it is, and stays", () =>
    Effect.gen(function* () {
      const { link, node } = yield* started()
      yield* link.reject({
        code: RejectCode.UNKNOWN_TOKEN,
        message: "no node has this token",
        retryable: false
      })
      const line = yield* node.line(/unknown_token/)
      assert.match(line, /next attempt in [3-6]\d\.\d s, and slowly from now on/)
      node.kill("SIGTERM")
      assert.strictEqual(yield* node.exited, 0)
      assert.notInclude(node.lines.join("\n"), TOKEN)
    })
  )

  it.live("LK9 keeps trying when nothing listens, and can still be stopped", () =>
    Effect.gen(function* () {
      const node = yield* mockProcess(["--edge", "127.0.0.1:9"], { IOP_NODE_TOKEN: TOKEN })
      yield* node.line(/cannot connect to 127\.0\.0\.1:9: nothing listens on that port.*next attempt in/)
      node.kill("SIGTERM")
      assert.strictEqual(yield* node.exited, 0)
    })
  )

  it.live("takes its token from a file", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "mock-node-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const file = join(folder, "token")
      writeFileSync(file, `${TOKEN}\n`)
      const edge = yield* tcpEdge()
      yield* mockProcess(["--edge", `${edge.host}:${edge.port}`, "--token-file", file], {})
      const request = yield* (yield* edge.link).accept({ config })
      assert.strictEqual(request.token, TOKEN)
    })
  )

  it.live("exits with 2 and a sentence when it can't start", () =>
    Effect.gen(function* () {
      const withoutToken = yield* mockProcess(["--edge", "127.0.0.1:9"], {})
      assert.strictEqual(yield* withoutToken.exited, 2)
      assert.match(
        withoutToken.lines.join("\n"),
        /no token: set IOP_NODE_TOKEN, or name a file with --token-file/
      )
      const withoutPort = yield* mockProcess(["--edge", "tower"], { IOP_NODE_TOKEN: TOKEN })
      assert.strictEqual(yield* withoutPort.exited, 2)
      assert.match(withoutPort.lines.join("\n"), /--edge: tower is not an address; write HOST:PORT/)
      const badFaults = yield* mockProcess(["--edge", "127.0.0.1:9", "--faults", "gap"], {
        IOP_NODE_TOKEN: TOKEN
      })
      assert.strictEqual(yield* badFaults.exited, 2)
      for (const { lines } of [withoutToken, withoutPort, badFaults]) {
        assert.notMatch(lines.join("\n"), /\n\s+at /)
      }
    })
  )
})

describe("faults on command", () => {
  it.live("LK5 a frozen process doesn't take its own standstill for the edge's silence", () =>
    Effect.gen(function* () {
      const { edge, link, node } = yield* started(["--control"])
      // The edge is silent for longer than it may be, as seen from a process that stood still all the time.
      yield* link.accept({ config, heartbeatIntervalMs: 100, heartbeatDeadAfter: 3 })
      yield* link.ready
      node.command({ fault: "freeze", ms: 1_000 })
      const run = link.run({ adapter: "mock", target: "echo", input: "still here" })
      yield* Effect.raceFirst(Effect.asVoid(run.toEnd), Effect.forever(link.ping))
      assert.strictEqual(run.received.at(-1)?.type, "completed")
      const reconnected = yield* Effect.raceFirst(Effect.as(edge.link, true), Effect.as(link.ping, false))
      assert.isFalse(reconnected)
    })
  )

  it.live("LK1 a link that carries nothing any more is given up, and the run goes on over the next", () =>
    Effect.gen(function* () {
      const { edge, link, node } = yield* started(["--control"])
      yield* link.accept({ config, heartbeatIntervalMs: 50, heartbeatDeadAfter: 3 })
      yield* link.ready
      const run = link.run({
        adapter: "mock",
        target: "count",
        runId: "r-1",
        input: '{"tokens": 40, "interval_ms": 5}'
      })
      yield* run.next
      node.command({ fault: "drop_without_fin" })
      yield* link.closed
      const second = yield* edge.link
      yield* second.accept({ config, resume: [run] })
      yield* run.toEnd
      assert.deepStrictEqual(run.violations, [])
      assert.strictEqual(run.received.filter((event) => event.type === "delta").length, 40)
    })
  )

  it.live("a command that is no fault is refused and changes nothing", () =>
    Effect.gen(function* () {
      const { link, node } = yield* started(["--control"])
      yield* link.accept({ config })
      yield* link.ready
      node.command({ fault: "explode" })
      yield* node.line(/there is no such fault/)
      yield* link.ping
    })
  )

  it.live("a run may ask for a fault of its own", () =>
    Effect.gen(function* () {
      const { link } = yield* started(["--faults", "[]"])
      yield* link.accept({ config })
      yield* link.ready
      const run = link.run({
        adapter: "mock",
        target: "count",
        runId: "r-1",
        input: '{"tokens": 3, "fault": {"fault": "duplicate_event", "run": "r-1"}}'
      })
      yield* run.toEnd
      assert.deepStrictEqual([run.repeated, run.violations], [[2], []])
    })
  )
})
