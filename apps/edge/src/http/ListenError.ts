// A listener that can't be bound: a user's mistake (exit 2), told with its name and address.
import { Data, Runtime } from "effect"

export class ListenError extends Data.TaggedError("ListenError")<{
  /** As the configuration calls it: nodes, http or ops. */
  readonly listener: string
  /** `host:port`. */
  readonly address: string
  readonly reason: string
  /** Whether another port would do. */
  readonly anotherPort: boolean
}> {
  override readonly [Runtime.errorExitCode] = 2
  override get message() {
    return `listen.${this.listener}: ${this.sentence}`
  }
  /** The message without the key of the configuration. */
  get sentence() {
    return `cannot listen on ${this.address}: ${this.reason}`
  }
}

/** What the system's error means for a person. */
export const listenReason = (error: NodeJS.ErrnoException): string => {
  switch (error.code) {
    case "EADDRINUSE":
      return "another process uses this port; stop it or choose another port"
    case "EACCES":
    case "EPERM":
      return "this user may not use this port; choose one above 1023"
    case "EADDRNOTAVAIL":
      return "this machine has no such address"
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "the host name does not resolve"
    case "EINVAL":
    case "EAFNOSUPPORT":
      return "this machine cannot listen on such an address"
    default:
      return error.code ?? "the system refuses it"
  }
}

/** Whether another port of the same address would do. */
export const wantsAnotherPort = ({ code }: NodeJS.ErrnoException): boolean =>
  code === "EADDRINUSE" || code === "EACCES" || code === "EPERM"
