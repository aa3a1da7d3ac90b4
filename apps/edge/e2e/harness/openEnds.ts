// The kernel's table of TCP connections over loopback, by ports: how many ends of connections processes still hold.
// For zombies, which neither side reports.
import { readFileSync } from "node:fs"

export interface EndsQuery {
  /** Port of this end. */
  readonly port?: number
  /** Port of the other end. */
  readonly peerPort?: number
}

const portOf = (address: string): number => Number.parseInt(address.slice(address.indexOf(":") + 1), 16)

/** Ends of connections, listeners left out, that a process has open. */
export const openEnds = ({ port, peerPort }: EndsQuery): number =>
  readFileSync("/proc/net/tcp", "utf8")
    .trimEnd()
    .split("\n")
    .slice(1)
    .filter((line) => {
      const [, local = "", remote = "", , , , , , , inode] = line.trim().split(/\s+/)
      if (inode === "0" || portOf(remote) === 0) return false
      return (
        (port === undefined || portOf(local) === port) &&
        (peerPort === undefined || portOf(remote) === peerPort)
      )
    }).length
