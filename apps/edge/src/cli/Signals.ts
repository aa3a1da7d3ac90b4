// SIGINT and SIGTERM, and SIGHUP of a terminal that has gone. A command that knows better than to be interrupted takes
// them over; the second one that nobody expected ends the process at once.
import { Context } from "effect"

export type Signal = "SIGINT" | "SIGTERM" | "SIGHUP"

export class Signals {
  #handler: (signal: Signal) => void

  /** `interrupt` is what a signal does while no command has taken over. */
  constructor(interrupt: (signal: Signal) => void) {
    this.#handler = interrupt
  }

  /** From now on signals go to the handler. */
  handle(handler: (signal: Signal) => void): void {
    this.#handler = handler
  }

  /** Begins to listen. */
  listen(): void {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => this.#handler(signal))
    }
  }
}

/** The signals of this process. */
export const ProcessSignals = Context.Reference<Signals>("@iop/edge/cli/Signals", {
  defaultValue: () => new Signals(() => {})
})
