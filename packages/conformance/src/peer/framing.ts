// The frames of the protocol, written for this kit alone: what it judges must not be what it is made of.

const HEADER_BYTES = 4

/** A payload with its length before it. */
export const frameOf = (payload: Uint8Array): Buffer => {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32BE(payload.length)
  return Buffer.concat([header, payload])
}

/** Four bytes that announce a frame of this length, and nothing after them. */
export const headerOf = (length: number): Buffer => {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32BE(length)
  return header
}

/** Puts frames together from the pieces in which they arrive. */
export class FrameReader {
  readonly #maxBytes: number
  #buffer: Buffer = Buffer.alloc(0)

  /** @param maxBytes the largest payload that is taken */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of an unfinished frame. */
  get pending(): number {
    return this.#buffer.length
  }

  /** The payloads that the piece completes. Throws for a length that is 0 or over the limit. */
  push(chunk: Buffer): ReadonlyArray<Buffer> {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk])
    const payloads: Array<Buffer> = []
    while (this.#buffer.length >= HEADER_BYTES) {
      const length = this.#buffer.readUInt32BE(0)
      if (length === 0) throw new Error("a frame of length 0 (R-FRAME-2)")
      if (length > this.#maxBytes) {
        throw new Error(`a frame of length ${length}, ${this.#maxBytes} are allowed (R-FRAME-3)`)
      }
      if (this.#buffer.length < HEADER_BYTES + length) break
      payloads.push(this.#buffer.subarray(HEADER_BYTES, HEADER_BYTES + length))
      this.#buffer = this.#buffer.subarray(HEADER_BYTES + length)
    }
    return payloads
  }
}
