// Spoils a frame in one of the ways in which bytes get spoilt: flipped bits, a lost byte, two frames run together, a
// wrong length.
import type { Random } from "./Random.ts"
import { frameOf } from "./RawNode.ts"

/** Another frame than the given one, most of the time; `others` are what it may be run together with. */
export const mutateFrame = (frame: Buffer, others: ReadonlyArray<Buffer>, random: Random): Buffer => {
  const payload = Buffer.from(frame.subarray(4))
  switch (random.below(4)) {
    case 0:
      for (let i = 0; i <= random.below(4); i++)
        payload[random.below(payload.length)]! ^= 1 << random.below(8)
      return frameOf(payload)
    case 1: {
      const at = random.below(payload.length)
      return frameOf(Buffer.concat([payload.subarray(0, at), payload.subarray(at + 1)]))
    }
    case 2: {
      const other = random.pick(others).subarray(4)
      const head = payload.subarray(0, random.below(payload.length) + 1)
      return frameOf(Buffer.concat([head, other.subarray(random.below(other.length))]))
    }
    default: {
      const whole = Buffer.from(frame)
      whole[random.below(whole.length)]! ^= 1 << random.below(8)
      return whole
    }
  }
}
