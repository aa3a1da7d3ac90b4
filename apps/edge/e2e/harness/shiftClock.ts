// Loaded into a process before everything else: moves its wall clock, and that alone, when it gets SIGUSR2. By how many
// milliseconds is in the file that IOP_TEST_CLOCK names. The monotonic clock and all timers go on as they are, as when a
// person or a time server sets the clock of a machine.
import { readFileSync } from "node:fs"

const RealDate = Date
let shiftMs = 0

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args: Array<number>) =>
    args.length === 0 ? new target(RealDate.now() + shiftMs) : Reflect.construct(target, args),
  get: (target, key) => (key === "now" ? () => RealDate.now() + shiftMs : Reflect.get(target, key))
})

process.on("SIGUSR2", () => {
  shiftMs = Number(readFileSync(process.env.IOP_TEST_CLOCK ?? "", "utf8"))
  process.stderr.write(`the wall clock is off by ${shiftMs} ms\n`)
})
