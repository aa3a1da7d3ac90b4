// A node as one long-lived thing: keeps a link to the edge, dials again for ever, and owns what outlives a link:
// the adapters, the runs, the boot id.

import { randomBytes } from "node:crypto"
import type { NodeConfigPayload } from "@iop/platform-common/gen/iop/v1/node_config_pb"
import type { RunRequest } from "@iop/platform-common/gen/iop/v1/run_pb"
import { Effect, Fiber, Queue, Random, type Redacted, type Scope } from "effect"
import type { Adapter } from "./Adapter.ts"
import { AdapterSet } from "./AdapterSet.ts"
import { FailureLog } from "./FailureLog.ts"
import { runSession, type SessionEnd, type SessionLink, type SessionOwner } from "./LinkSession.ts"
import type { Dialer } from "./NodeConnection.ts"
import { nodeStatusFrame } from "./nodeStatus.ts"
import { RunTable } from "./RunTable.ts"
import { redialDelay } from "./redialDelay.ts"

/** What a node is made of. */
export interface NodeAgentOptions {
  readonly dial: Dialer
  /** The node's token; it leaves the process in the RegisterRequest and nowhere else. */
  readonly token: Redacted.Redacted<string>
  /** The kinds of adapters that the edge may configure. */
  readonly adapters: ReadonlyArray<Adapter>
  /** Name and version of the node's software, for the edge's listings. */
  readonly agentName: string
  readonly agentVersion: string
  /**
   * How long runs are held while there is no link, in milliseconds. Default 120,000, four times the grace that an
   * edge gives them: after it nobody will ask for them, and they only keep a backend busy.
   */
  readonly holdRunsMs?: number
}

/** A node. */
export interface NodeAgent {
  /** Keeps a link to the edge, for ever. */
  readonly run: Effect.Effect<never>
  /**
   * Finishes: takes no new run, lets the others end within the edge's drain timeout, says goodbye. `run` must still
   * be running. Never fails; ends at the latest a few seconds after the drain timeout.
   */
  readonly drain: Effect.Effect<void>
}

const DEFAULT_HOLD_RUNS_MS = 120_000
/** The protocol's default, for a node that has no configuration yet. */
const DEFAULT_DRAIN_TIMEOUT_MS = 30_000
/** How long runs that were stopped at the end of a drain may take to end and to be acknowledged, in milliseconds. */
const STOP_TIMEOUT_MS = 2_000
/** Changes of the status within this time go out as one, in milliseconds. */
const STATUS_SPACING_MS = 100

/** Makes a node. Its scope stops the adapters; call `drain` first to let runs finish. */
export const makeNodeAgent = Effect.fnUntraced(function* (
  options: NodeAgentOptions
): Effect.fn.Return<NodeAgent, never, Scope.Scope> {
  const context = yield* Effect.context<never>()
  const fork = Effect.runForkWith(context)
  const failures = new FailureLog()
  const statusChanged = yield* Queue.sliding<void>(1)
  const markStatus = () => {
    Queue.offerUnsafe(statusChanged, undefined)
  }
  const idleWaiters = new Set<() => void>()

  let config: NodeConfigPayload | undefined
  let stopping = false
  let gone = false
  let drainedByEdge = false
  let link: SessionLink | undefined
  let holdTimer: Fiber.Fiber<void> | undefined

  const runs = new RunTable({
    fork: (effect) => fork(effect),
    onIdle: () => {
      for (const waiter of [...idleWaiters]) waiter()
    }
  })
  const adapters = new AdapterSet(options.adapters, {
    changed: markStatus,
    stopped: (adapter) => runs.stopAdapter(adapter)
  })

  const idle = Effect.callback<void>((resume) => {
    if (runs.size === 0) return resume(Effect.void)
    const waiter = () => resume(Effect.void)
    idleWaiters.add(waiter)
    return Effect.sync(() => idleWaiters.delete(waiter))
  })

  const finishRuns = (timeoutMs: number) =>
    idle.pipe(
      Effect.timeoutOption(timeoutMs),
      Effect.flatMap((finished) => {
        if (finished._tag === "Some") return Effect.void
        const count = runs.size
        runs.stopAll(`the node was drained and the run had not finished after ${timeoutMs} ms`)
        return Effect.logWarning("runs did not finish within the drain timeout and were stopped", {
          runs: count,
          timeoutMs
        }).pipe(
          Effect.andThen(link === undefined ? Effect.void : Effect.timeoutOption(idle, STOP_TIMEOUT_MS))
        )
      })
    )

  const sendStatus = (to: SessionLink) =>
    to.send(
      nodeStatusFrame({
        revision: config?.revision ?? "",
        adapters: adapters.all,
        draining: stopping || drainedByEdge,
        maxFrameBytes: to.maxNodeFrameBytes
      })
    )

  const onRunRequest = (request: RunRequest) => {
    const refusal = refusalOf(request)
    if (refusal !== undefined) {
      runs.refuse(request, refusal)
      return
    }
    const adapter = adapters.find(request.adapter)
    if (request.input === undefined || request.input.kind.case === undefined) {
      runs.refuse(request, "the run has no input that this node knows", "invalid_input")
    } else if (adapter !== undefined) {
      runs.start(request, adapter, request.input)
    }
  }

  const refusalOf = ({ adapter: name, target }: RunRequest): string | undefined => {
    if (stopping || drainedByEdge) return "the node is draining"
    const adapter = adapters.find(name)
    if (adapter === undefined) return `this node has no adapter ${name}`
    if (adapter.state === "starting" || adapter.state === "unavailable" || adapter.instance === undefined) {
      return `adapter ${name} is ${adapter.state}: ${adapter.reason}`
    }
    if (!adapter.targets.some((offer) => offer.name === target)) {
      return `adapter ${name} has no target ${target}`
    }
    const { slots } = adapter.config
    if (slots > 0 && adapter.slotsInUse >= slots) return `all ${slots} slots of adapter ${name} are taken`
    const nodeSlots = config?.runtime?.slots ?? 0
    if (nodeSlots > 0 && runs.executing >= nodeSlots) return `all ${nodeSlots} slots of the node are taken`
    return undefined
  }

  const owner: SessionOwner = {
    dial: options.dial,
    token: options.token,
    bootId: randomBytes(16),
    agentName: options.agentName,
    agentVersion: options.agentVersion,
    adapterKinds: adapters.kinds,
    runs,
    onLink: (newLink, accepted) => {
      link = newLink
      if (holdTimer !== undefined) fork(Fiber.interrupt(holdTimer))
      holdTimer = undefined
      const { dropped, resumed } = runs.attach(newLink, accepted.heldRuns)
      if (resumed > 0) fork(Effect.logInfo("runs go on over the new link", { runs: resumed }))
      if (dropped.length > 0) {
        fork(
          Effect.logWarning("runs were dropped, the edge does not want them", {
            runs: dropped.length,
            first: dropped[0]
          })
        )
      }
    },
    onRegistered: (accepted) =>
      Effect.logInfo("registered", {
        node: accepted.nodeId,
        alias: accepted.alias,
        edge: accepted.edgeId,
        epoch: String(accepted.linkEpoch),
        revision: accepted.config?.revision
      }),
    applyConfig: (payload) =>
      adapters.apply(payload).pipe(
        Effect.andThen(
          Effect.sync(() => {
            config = payload
          })
        )
      ),
    onRunRequest,
    reportStatus: (current) =>
      Effect.gen(function* () {
        while (true) {
          yield* Queue.clear(statusChanged)
          sendStatus(current)
          yield* Effect.sleep(STATUS_SPACING_MS)
          yield* Queue.take(statusChanged)
        }
      }),
    finishRuns,
    onDrain: (reason) => {
      drainedByEdge = true
      if (link !== undefined) sendStatus(link)
      fork(Effect.logInfo("the edge drains this node", { reason, runs: runs.size }))
    }
  }

  const holdRuns = Effect.suspend(() => {
    link = undefined
    drainedByEdge = false
    if (runs.size > 0 && holdTimer === undefined) {
      const holdRunsMs = options.holdRunsMs ?? DEFAULT_HOLD_RUNS_MS
      holdTimer = fork(
        Effect.sleep(holdRunsMs).pipe(
          Effect.andThen(
            Effect.suspend(() => {
              holdTimer = undefined
              const count = runs.size
              runs.forgetAll("there was no link to the edge for too long")
              return Effect.logWarning("runs were given up, there was no link for too long", {
                runs: count,
                holdRunsMs
              })
            })
          )
        )
      )
    }
    return Effect.void
  })

  const log = (end: SessionEnd, delayMs: number) =>
    failures.log(
      end.kind === "goodbye_protocol_error" ? "Error" : "Warn",
      end.kind,
      `${end.message}; next attempt in ${(delayMs / 1_000).toFixed(1)} s${
        end.permanent ? ", and slowly from now on: a person has to change something first" : ""
      }`
    )

  const run = Effect.gen(function* () {
    let failed = 0
    while (true) {
      const end = yield* Effect.ensuring(runSession(owner), holdRuns)
      // After its goodbye a node doesn't come back.
      if (gone) return yield* Effect.never
      if (end.held) failed = 0
      const delayMs = redialDelay({
        failures: failed++,
        permanent: end.permanent,
        retryAfterMs: end.retryAfterMs,
        random: yield* Random.next
      })
      yield* log(end, delayMs)
      yield* Effect.sleep(delayMs)
    }
  })

  const drain = Effect.gen(function* () {
    if (stopping) return
    stopping = true
    // At once, and not with the next report: without runs the goodbye would overtake it.
    if (link !== undefined && config !== undefined) sendStatus(link)
    const timeoutMs = config?.runtime?.drainTimeoutMs || DEFAULT_DRAIN_TIMEOUT_MS
    yield* Effect.logInfo("draining", { runs: runs.size, timeoutMs })
    yield* finishRuns(timeoutMs)
    gone = true
    if (link !== undefined) yield* link.sayGoodbye("the node is shutting down")
    yield* Effect.logInfo("drained")
  })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      runs.forgetAll("the node has stopped")
      if (holdTimer !== undefined) fork(Fiber.interrupt(holdTimer))
      return Effect.ignore(Effect.timeout(Effect.interruptible(adapters.close), STOP_TIMEOUT_MS))
    })
  )

  return { run, drain }
})
