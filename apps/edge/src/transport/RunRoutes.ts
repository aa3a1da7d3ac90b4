// Where the events of a link go: each handle in use leads to the attempt that owns it. Handles are given here and
// given back here, so that none outlives its link.

import type { NodeRunEvent } from "@iop/platform-common/protocol/RunEvent"
import type { AttemptSink } from "../node/NodeLink.ts"
import type { Handles } from "./Handles.ts"
import { StrayEvents } from "./StrayEvents.ts"
import type { StrayKind } from "./TransportMetrics.ts"

interface Route {
  readonly sink: AttemptSink
  /** Whether the present read had events of it. */
  touched: boolean
}

export class RunRoutes<Link> {
  readonly #handles: Handles<Link>
  readonly #link: Link
  readonly #routes = new Map<number, Route>()
  readonly #touched: Array<Route> = []
  readonly #stray = new StrayEvents()

  constructor(handles: Handles<Link>, link: Link) {
    this.#handles = handles
    this.#link = link
  }

  /** A new handle whose events go to the sink. */
  add(sink: AttemptSink): number {
    const handle = this.#handles.next(this.#link)
    this.#routes.set(handle, { sink, touched: false })
    return handle
  }

  /** Takes back a handle that the node never heard of. */
  withdraw(handle: number): boolean {
    if (!this.#routes.delete(handle)) return false
    this.#handles.release(handle)
    return true
  }

  /** The handle's run is over: what still comes for it is a stray. */
  release(handle: number): void {
    if (this.withdraw(handle)) this.#stray.ended(handle)
  }

  /** Passes an event on. False when the handle is not in use on this link. */
  deliver(handle: number, seq: number, event: NodeRunEvent, bytes: number): boolean {
    const route = this.#routes.get(handle)
    if (route === undefined) return false
    if (!route.touched) {
      route.touched = true
      this.#touched.push(route)
    }
    route.sink.onEvent(seq, event, bytes)
    return true
  }

  /** The read is over: wakes each run that had events in it, once. */
  endRead(): void {
    for (const route of this.#touched) {
      route.touched = false
      route.sink.onReadEnd()
    }
    this.#touched.length = 0
  }

  /** Judges an event that `deliver` did not take. `end` says why the link has to end, when it has to. */
  stray(handle: number, now: number): { readonly kind: StrayKind; readonly end: string | undefined } {
    const owner = this.#handles.owner(handle)
    const kind = this.#stray.kind(handle, owner !== undefined && owner !== this.#link)
    return { kind, end: this.#stray.count(kind, now) }
  }

  /** The link is over and all its handles with it. */
  clear(): void {
    for (const handle of this.#routes.keys()) this.#handles.release(handle)
    this.#routes.clear()
  }
}
