// Cuts a byte stream into frames: a 4-byte big-endian length N, then N bytes. It owns the two rules that protect
// a reader from its peer: a length is judged on its fourth byte, before anything is allocated, and the memory of
// an unfinished frame is bounded by what was received, never by what was declared.

/** Bytes of the length in front of every payload. */
export const FRAME_HEADER_BYTES = 4

/** A stream that is not a sequence of frames. Nothing after it can be read. */
export class FrameError extends Error {
  /** `frame_too_large`: over the limit. `frame_empty`: N = 0. `truncated`: the stream ended inside a frame. */
  readonly reason: "frame_too_large" | "frame_empty" | "truncated"
  /** The length that the header declared, in bytes, where there was a whole header. */
  readonly declared?: number

  constructor(reason: FrameError["reason"], message: string, declared?: number) {
    super(message)
    this.name = "FrameError"
    this.reason = reason
    if (declared !== undefined) this.declared = declared
  }
}

/** An incremental decoder of one direction of one connection: any split of the bytes gives the same frames. */
export class FrameDecoder {
  #maxFrameBytes: number
  /** The bytes of an unfinished header, most significant first, and how many there are. */
  #header = 0
  #headerBytes = 0
  /** Length of the unfinished frame; 0 while a header is expected. */
  #declared = 0
  #body: Uint8Array | undefined
  #bodyBytes = 0
  #failed: FrameError | undefined

  /** @param maxFrameBytes largest allowed payload, in bytes, header not counted */
  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes
  }

  /** Changes the limit (bytes) for every header that is completed from now on. */
  setMaxFrameBytes(maxFrameBytes: number): void {
    this.#maxFrameBytes = maxFrameBytes
  }

  /** Bytes received of a frame that is not complete, its header included. Above 0 at the end of the stream: truncated. */
  get pendingBytes(): number {
    return this.#declared === 0 ? this.#headerBytes : FRAME_HEADER_BYTES + this.#bodyBytes
  }

  /**
   * Reads `chunk` and appends every payload that it completes to `into`. A payload that lies whole in the chunk is a
   * view of it: it keeps the chunk in memory, and is valid as long as the chunk is not overwritten.
   *
   * Throws `FrameError` at a length of 0 or over the limit; the payloads before it were appended. Every later call
   * throws the same error.
   */
  push(chunk: Uint8Array, into: Array<Uint8Array>): void {
    if (this.#failed !== undefined) throw this.#failed
    const end = chunk.length
    let at = 0
    while (at < end) {
      if (this.#declared === 0) {
        let declared: number
        if (this.#headerBytes === 0 && end - at >= FRAME_HEADER_BYTES) {
          declared =
            ((chunk[at]! << 24) | (chunk[at + 1]! << 16) | (chunk[at + 2]! << 8) | chunk[at + 3]!) >>> 0
          at += FRAME_HEADER_BYTES
        } else {
          this.#header = ((this.#header << 8) | chunk[at++]!) >>> 0
          if (++this.#headerBytes < FRAME_HEADER_BYTES) continue
          declared = this.#header
          this.#header = 0
          this.#headerBytes = 0
        }
        if (declared === 0 || declared > this.#maxFrameBytes) throw this.#fail(declared)
        if (end - at >= declared) {
          into.push(chunk.subarray(at, at + declared))
          at += declared
          continue
        }
        this.#declared = declared
      }
      at = this.#gather(chunk, at, into)
    }
  }

  /** Adds the part of `chunk` from `at` that belongs to the unfinished frame; gives the offset behind it. */
  #gather(chunk: Uint8Array, at: number, into: Array<Uint8Array>): number {
    const part = Math.min(this.#declared - this.#bodyBytes, chunk.length - at)
    if (part === 0) return at
    const received = this.#bodyBytes + part
    let body = this.#body
    if (body === undefined || body.length < received) {
      // Doubling keeps the copying linear in the frame, and the buffer within twice what the peer really sent.
      const grown = Buffer.allocUnsafe(Math.min(this.#declared, received * 2))
      if (body !== undefined) grown.set(body.subarray(0, this.#bodyBytes))
      this.#body = body = grown
    }
    body.set(part === chunk.length ? chunk : chunk.subarray(at, at + part), this.#bodyBytes)
    this.#bodyBytes = received
    if (received === this.#declared) {
      into.push(body)
      this.#declared = 0
      this.#body = undefined
      this.#bodyBytes = 0
    }
    return at + part
  }

  #fail(declared: number): FrameError {
    this.#failed =
      declared === 0
        ? new FrameError("frame_empty", "the peer sent a frame of length 0", 0)
        : new FrameError(
            "frame_too_large",
            `the peer declared a frame of ${declared} bytes, the limit is ${this.#maxFrameBytes} bytes`,
            declared
          )
    return this.#failed
  }
}
