// How many connections each listener may hold. At its descriptor limit a process accepts and drops without an event,
// so that the edge stays below it by its own count.
import { readFileSync } from "node:fs"

/** Files, sockets of logs and traces, child processes. */
const RESERVE = 48
/** Shares of what is left: nodes come first, whoever watches needs little. */
const SHARES = { nodes: 0.5, http: 0.4, ops: 0.1 } as const

export interface ConnectionLimits {
  /** Open descriptors that the system allows; undefined where it does not say. */
  readonly descriptors: number | undefined
  readonly nodes: number | undefined
  readonly http: number | undefined
  readonly ops: number | undefined
}

/** Divides a number of descriptors among the listeners. */
export const divideDescriptors = (descriptors: number | undefined): ConnectionLimits => {
  if (descriptors === undefined) {
    return { descriptors, nodes: undefined, http: undefined, ops: undefined }
  }
  const room = Math.max(0, descriptors - RESERVE)
  const share = (part: number) => Math.max(4, Math.floor(room * part))
  return { descriptors, nodes: share(SHARES.nodes), http: share(SHARES.http), ops: share(SHARES.ops) }
}

/** A sentence when so many nodes can't all be connected below the limits, with both numbers. */
export const descriptorShortage = (nodes: number, limits: ConnectionLimits): string | undefined =>
  limits.nodes === undefined || nodes <= limits.nodes
    ? undefined
    : `warning: the configuration has ${nodes} nodes, but this process may open ${limits.descriptors} files, which is enough for ${limits.nodes} of them; raise the limit (ulimit -n)`

/** The limits of this process. */
export const connectionLimits = (): ConnectionLimits => divideDescriptors(openFilesLimit())

const openFilesLimit = (): number | undefined => {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]
    return soft === undefined ? undefined : Number(soft)
  } catch {
    // Other systems than Linux do not have the file; they have no limit that the edge could know cheaply.
    return undefined
  }
}
