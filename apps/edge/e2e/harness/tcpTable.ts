// The kernel's view of a loopback connection: whether a process still holds an end of it. For what the other end can't
// see, such as a socket that was destroyed while its peer does not read.
import { readFileSync } from "node:fs"

const LOOPBACK = "0100007F"

const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0")

/** Whether a process holds the end on `port` of the connection between these two ports. */
export const isHeld = (port: number, peerPort: number): boolean =>
  readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .some((line) => {
      const [, local, remote, , , , , , , inode] = line.trim().split(/\s+/)
      return (
        local === `${LOOPBACK}:${hex(port)}` && remote === `${LOOPBACK}:${hex(peerPort)}` && inode !== "0"
      )
    })
