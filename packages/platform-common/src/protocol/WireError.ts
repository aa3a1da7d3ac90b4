// The one error of the wire codec: why bytes are not a frame of this protocol, or a value cannot become one.

/** What is wrong with a frame. */
export type WireErrorReason = "malformed" | "too_many" | "invalid_utf8" | "too_deep"

/** A frame that breaks the protocol. The message names the rule and the field, never a value. */
export class WireError extends Error {
  override readonly name = "WireError"
  readonly reason: WireErrorReason

  constructor(reason: WireErrorReason, message: string, options?: { readonly cause: unknown }) {
    super(message, options)
    this.reason = reason
  }
}
