// Why a connection ended, in one value for the log, the metrics and the owner of the link.

/** `message` is a sentence for a person, without the peer's address. */
export type CloseReason =
  /** The peer ended the connection between two frames. */
  | { readonly tag: "ended"; readonly message: string }
  /** The peer ended the connection inside a frame; `pendingBytes` of it had come, its header included. */
  | { readonly tag: "truncated"; readonly message: string; readonly pendingBytes: number }
  /** The connection was cut: the peer's process or machine, or something between, went away. */
  | { readonly tag: "reset"; readonly message: string }
  /** The peer declared a frame over the limit; both in bytes. */
  | {
      readonly tag: "frame_too_large"
      readonly message: string
      readonly declared: number
    }
  /** The peer declared a frame of length 0. */
  | { readonly tag: "frame_empty"; readonly message: string }
  /** The peer took nothing of what was written for the whole write deadline. */
  | { readonly tag: "write_deadline"; readonly message: string }
  /** Anything else, with its cause: an error of the socket, or an exception of `onFrames`. */
  | { readonly tag: "error"; readonly message: string; readonly cause: unknown }
  /** This side ended it, with its own words. */
  | { readonly tag: "local"; readonly message: string }
