// What waits to be written on one connection, in two lanes: control frames leave before data frames, and each lane
// keeps its order. It turns the waiting frames into batches of few buffers; when a batch leaves is not its affair.

import { FRAME_HEADER_BYTES, FrameError } from "./FrameDecoder.ts"

/** `control` (pings, acks, cancels) overtakes `data` (requests, events). */
export type FrameLane = "control" | "data"

/** A payload of up to so many bytes is copied next to its neighbours; a larger one is written from where it lies. */
const COPY_MAX_BYTES = 16 * 1024

/** Lanes give back the memory of frames that have left once so many have. */
const COMPACT_AFTER = 1024

/** A batch of frames, ready to be written in one go. */
export interface FrameBatch {
  /** The bytes, in order. Never empty. */
  readonly segments: ReadonlyArray<Uint8Array>
  readonly bytes: number
  /** Frames that begin in this batch. */
  readonly frames: number
}

export class FrameQueue {
  #control: Array<Uint8Array> = []
  #controlHead = 0
  /** A frame that was removed leaves a hole, so that the positions of those behind it stay. */
  #data: Array<Uint8Array | undefined> = []
  #dataHead = 0
  /** How many data frames were dropped from the front of `#data` so far: position = offset + index. */
  #dataOffset = 0
  /** Tag to position, in order of position; entries of frames that have left are removed lazily. */
  readonly #tags = new Map<number, number>()
  /** The part not yet taken of a frame that has begun. Nothing may come between it and its beginning. */
  #rest: Uint8Array | undefined
  #bytes = 0

  /** Bytes that wait, headers included. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Appends a payload, which belongs to the queue from now on and must not be changed. `tag` names a data frame for
   * `remove`; a later frame with the same tag takes the name over.
   *
   * Throws `FrameError` for a payload that no frame can hold: an empty one, or one of 4 GiB.
   */
  push(payload: Uint8Array, lane: FrameLane, tag?: number): void {
    const length = payload.length
    if (length === 0) throw new FrameError("frame_empty", "a frame of length 0 cannot be sent", 0)
    if (length > 0xffff_ffff) {
      throw new FrameError("frame_too_large", `a frame of ${length} bytes cannot be sent`, length)
    }
    if (lane === "control") {
      this.#control.push(payload)
    } else {
      if (tag !== undefined) {
        this.#tags.delete(tag)
        this.#tags.set(tag, this.#dataOffset + this.#data.length)
      }
      this.#data.push(payload)
    }
    this.#bytes += FRAME_HEADER_BYTES + length
  }

  /** Removes the data frame with this tag. False when there is none, or when its first byte has left. */
  remove(tag: number): boolean {
    const position = this.#tags.get(tag)
    if (position === undefined) return false
    this.#tags.delete(tag)
    const index = position - this.#dataOffset
    const payload = index < this.#dataHead ? undefined : this.#data[index]
    if (payload === undefined) return false
    this.#data[index] = undefined
    this.#bytes -= FRAME_HEADER_BYTES + payload.length
    return true
  }

  /** Takes about `maxBytes` from the front. A frame that does not fit is cut, and goes on in the next batch. */
  takeBatch(maxBytes: number): FrameBatch | undefined {
    if (this.#bytes === 0) {
      // Only holes are left, if anything.
      if (this.#data.length > 0) this.clear()
      return undefined
    }
    const segments: Array<Uint8Array> = []
    const small: Array<Uint8Array> = []
    let smallBytes = 0
    let frames = 0
    let bytes = 0
    if (this.#rest !== undefined) {
      const part = this.#cut(this.#rest, maxBytes)
      segments.push(part)
      bytes = part.length
    }
    while (bytes < maxBytes) {
      const payload = this.#next()
      if (payload === undefined) break
      frames++
      if (payload.length <= COPY_MAX_BYTES) {
        small.push(payload)
        smallBytes += FRAME_HEADER_BYTES + payload.length
        bytes += FRAME_HEADER_BYTES + payload.length
        continue
      }
      segments.push(joinFrames(small, smallBytes, payload.length))
      small.length = 0
      smallBytes = 0
      bytes += FRAME_HEADER_BYTES
      const part = this.#cut(payload, Math.max(1, maxBytes - bytes))
      segments.push(part)
      bytes += part.length
    }
    if (small.length > 0) segments.push(joinFrames(small, smallBytes, 0))
    this.#bytes -= bytes
    this.#forget()
    return { segments, bytes, frames }
  }

  /** Drops everything. */
  clear(): void {
    this.#control = []
    this.#controlHead = 0
    this.#data = []
    this.#dataHead = 0
    this.#dataOffset = 0
    this.#tags.clear()
    this.#rest = undefined
    this.#bytes = 0
  }

  #cut(payload: Uint8Array, maxBytes: number): Uint8Array {
    if (payload.length <= maxBytes) {
      this.#rest = undefined
      return payload
    }
    this.#rest = payload.subarray(maxBytes)
    return payload.subarray(0, maxBytes)
  }

  #next(): Uint8Array | undefined {
    if (this.#controlHead < this.#control.length) return this.#control[this.#controlHead++]
    while (this.#dataHead < this.#data.length) {
      const payload = this.#data[this.#dataHead++]
      if (payload !== undefined) return payload
    }
    return undefined
  }

  /** Lets go of frames that have left: at once when a lane is empty, in large steps when it is not. */
  #forget(): void {
    if (this.#controlHead === this.#control.length) {
      this.#control.length = 0
      this.#controlHead = 0
    } else if (this.#controlHead >= COMPACT_AFTER) {
      this.#control.splice(0, this.#controlHead)
      this.#controlHead = 0
    }
    if (this.#dataHead === this.#data.length || this.#dataHead >= COMPACT_AFTER) {
      this.#dataOffset += this.#dataHead
      if (this.#dataHead === this.#data.length) this.#data.length = 0
      else this.#data.splice(0, this.#dataHead)
      this.#dataHead = 0
    }
    const first = this.#dataOffset + this.#dataHead
    for (const [tag, position] of this.#tags) {
      if (position >= first) break
      this.#tags.delete(tag)
    }
  }
}

/** One exact buffer of whole small frames; `header`, unless 0, is the length of a payload that follows by itself. */
function joinFrames(payloads: ReadonlyArray<Uint8Array>, bytes: number, header: number): Uint8Array {
  const joined = Buffer.allocUnsafe(header === 0 ? bytes : bytes + FRAME_HEADER_BYTES)
  let at = 0
  for (const payload of payloads) {
    at = writeHeader(joined, at, payload.length)
    joined.set(payload, at)
    at += payload.length
  }
  if (header !== 0) writeHeader(joined, at, header)
  return joined
}

function writeHeader(into: Uint8Array, at: number, length: number): number {
  into[at] = length >>> 24
  into[at + 1] = length >>> 16
  into[at + 2] = length >>> 8
  into[at + 3] = length
  return at + FRAME_HEADER_BYTES
}
