// What the kernel says about a process: its descriptors and the processor time that it has used.
import { readdirSync, readFileSync } from "node:fs"

/** Open descriptors. */
export const openDescriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** The kernel counts in hundredths of a second, on every Linux that Node runs on. */
const TICK_MS = 10

/** Processor time of all threads so far, in milliseconds. */
export const processorMs = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  // The name, in parentheses, may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
