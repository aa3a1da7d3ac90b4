// The adapters that the edge's configuration asks for: starts, stops and restarts them by difference, and knows
// what each of them says about itself.

import { equals } from "@bufbuild/protobuf"
import {
  type AdapterConfig,
  AdapterConfigSchema,
  type NodeConfigPayload
} from "@iop/platform-common/gen/iop/v1/node_config_pb"
import { Cause, Effect, Exit, Scope } from "effect"
import type { Adapter, AdapterInstance, AdapterReport, TargetOffer } from "./Adapter.ts"

/** How often a failed start is tried again when the edge names no probe interval, in milliseconds. */
const DEFAULT_PROBE_INTERVAL_MS = 15_000

/** One configured adapter. */
export interface ConfiguredAdapter {
  readonly config: AdapterConfig
  /** Present while it can take runs. */
  instance: AdapterInstance | undefined
  state: AdapterReport["state"]
  /** For a person; empty when ready. */
  reason: string
  targets: ReadonlyArray<TargetOffer>
  /** Runs that execute on it now. */
  slotsInUse: number
}

interface Entry {
  readonly adapter: ConfiguredAdapter
  readonly scope: Scope.Closeable
  readonly probeIntervalMs: number
}

/** What the set tells its owner. */
export interface AdapterSetEvents {
  /** Something that a NodeStatus says has changed. */
  readonly changed: () => void
  /** The adapter is stopped or restarted: its runs end. */
  readonly stopped: (adapter: ConfiguredAdapter) => void
}

/** See the file's head. */
export class AdapterSet {
  readonly #kinds: ReadonlyMap<string, Adapter>
  readonly #events: AdapterSetEvents
  readonly #entries = new Map<string, Entry>()

  constructor(adapters: ReadonlyArray<Adapter>, events: AdapterSetEvents) {
    this.#kinds = new Map(adapters.map((adapter) => [adapter.kind, adapter]))
    this.#events = events
  }

  /** The kinds that can be configured. */
  get kinds(): ReadonlyArray<string> {
    return [...this.#kinds.keys()]
  }

  /** The configured adapters, in the order of the configuration. */
  get all(): ReadonlyArray<ConfiguredAdapter> {
    return Array.from(this.#entries.values(), (entry) => entry.adapter)
  }

  /** The adapter of that name. */
  find(name: string): ConfiguredAdapter | undefined {
    return this.#entries.get(name)?.adapter
  }

  /**
   * Makes the set be what the configuration says. Adapters whose configuration is unchanged go on undisturbed;
   * those that start slowly are reported as starting. Returns as soon as each was given its start.
   */
  apply(config: NodeConfigPayload): Effect.Effect<void> {
    return Effect.suspend(() => {
      const probeIntervalMs = config.runtime?.probeIntervalMs || DEFAULT_PROBE_INTERVAL_MS
      const before = new Map(this.#entries)
      this.#entries.clear()
      const steps: Array<Effect.Effect<unknown>> = []
      for (const wanted of config.adapters) {
        const old = before.get(wanted.name)
        if (
          old !== undefined &&
          old.probeIntervalMs === probeIntervalMs &&
          equals(AdapterConfigSchema, old.adapter.config, wanted)
        ) {
          this.#entries.set(wanted.name, old)
          before.delete(wanted.name)
          continue
        }
        before.delete(wanted.name)
        const entry = this.#enter(wanted, probeIntervalMs)
        this.#entries.set(wanted.name, entry)
        // The successor waits for its predecessor: both may want the same port or directory.
        const stop = old === undefined ? Effect.void : this.#stop(old)
        steps.push(Effect.forkDetach(Effect.andThen(stop, this.#start(entry)), { startImmediately: true }))
      }
      for (const old of before.values()) {
        steps.push(Effect.forkDetach(this.#stop(old), { startImmediately: true }))
      }
      return Effect.all(steps, { discard: true })
    })
  }

  /** Stops every adapter and waits for their finalizers. */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const entries = [...this.#entries.values()]
      this.#entries.clear()
      return Effect.all(
        entries.map((entry) => this.#stop(entry)),
        { concurrency: "unbounded", discard: true }
      )
    })
  }

  #enter(config: AdapterConfig, probeIntervalMs: number): Entry {
    return {
      adapter: {
        config,
        instance: undefined,
        state: "starting",
        reason: "the adapter is starting",
        targets: config.targets.map((name) => ({ name })),
        slotsInUse: 0
      },
      scope: Scope.makeUnsafe(),
      probeIntervalMs
    }
  }

  #stop(entry: Entry): Effect.Effect<void> {
    return Effect.suspend(() => {
      entry.adapter.instance = undefined
      this.#events.stopped(entry.adapter)
      return Scope.close(entry.scope, Exit.void)
    })
  }

  #start(entry: Entry): Effect.Effect<void> {
    const { adapter } = entry
    const kind = kindOf(adapter.config)
    const definition = this.#kinds.get(kind)
    if (definition === undefined) {
      const known = this.kinds.length === 0 ? "none" : this.kinds.join(", ")
      return this.#report(entry, {
        state: "unavailable",
        reason:
          kind === ""
            ? `the configuration names no adapter type that this node knows; it has ${known}`
            : `this node has no adapter of type ${kind}; it has ${known}`,
        targets: []
      })
    }
    let reported = false
    // A report of readiness from within the start: true only once there is an instance to give runs to.
    let early: AdapterReport | undefined
    let lastReason: string | undefined
    const context = {
      name: adapter.config.name,
      slots: adapter.config.slots,
      targets: adapter.config.targets,
      probeIntervalMs: entry.probeIntervalMs,
      report: (report: AdapterReport) =>
        Effect.suspend(() => {
          reported = true
          early = adapter.instance === undefined && report.state === "ready" ? report : undefined
          return early === undefined ? this.#report(entry, report) : Effect.void
        })
    }
    const attempt: Effect.Effect<void> = Effect.suspend(() => {
      // A scope of its own: what a failed start has opened is closed before the next one.
      const scope = Scope.forkUnsafe(entry.scope)
      return Effect.suspend(() => definition.start(adapter.config.settings, context)).pipe(
        Scope.provide(scope),
        Effect.onError(() => Scope.close(scope, Exit.void))
      )
    }).pipe(
      Effect.flatMap((instance) => {
        adapter.instance = instance
        if (early !== undefined) return this.#report(entry, early)
        return reported ? Effect.void : this.#report(entry, { state: "ready" })
      }),
      Effect.catchCause((cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Effect.void
        const crash = Cause.hasDies(cause)
        const error = Cause.squash(cause)
        const reason = error instanceof Error ? error.message : String(error)
        // Said once, not every probe interval.
        const known = reason === lastReason
        lastReason = reason
        const log = crash
          ? Effect.logError("an adapter crashed at its start", cause)
          : Effect.logWarning("an adapter did not start", { reason })
        return this.#report(entry, {
          state: "unavailable",
          reason: crash ? `the adapter crashed at its start: ${reason}` : reason
        }).pipe(
          Effect.andThen(known ? Effect.void : log),
          Effect.annotateLogs({ adapter: adapter.config.name }),
          Effect.andThen(Effect.sleep(entry.probeIntervalMs)),
          Effect.andThen(attempt)
        )
      })
    )
    return Effect.asVoid(Effect.forkIn(attempt, entry.scope, { startImmediately: true }))
  }

  #report(entry: Entry, report: AdapterReport): Effect.Effect<void> {
    return Effect.sync(() => {
      const { adapter } = entry
      // An adapter that was stopped may still have something to say; nobody asks for it.
      if (this.#entries.get(adapter.config.name) !== entry) return
      const reason = report.state === "ready" ? "" : (report.reason ?? `the adapter is ${report.state}`)
      const targets = report.targets ?? adapter.targets
      if (
        adapter.state === report.state &&
        adapter.reason === reason &&
        JSON.stringify(adapter.targets) === JSON.stringify(targets)
      ) {
        return
      }
      adapter.state = report.state
      adapter.reason = reason
      adapter.targets = targets
      this.#events.changed()
    })
  }
}

/** The adapter type that a configuration asks for; empty if it is of a protocol newer than this node's. */
export const kindOf = (config: AdapterConfig): string =>
  config.settings.case === "custom" ? config.settings.value.kind : (config.settings.case ?? "")
