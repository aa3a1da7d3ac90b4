// Keeps the first half of a character until the second comes. Backends that escape their JSON per token send emoji
// in halves; each half alone would reach the consumer as a replacement character.

import type { DeltaEvent } from "@iop/platform-common/protocol/RunEvent"
import { isHighSurrogate, placeOf, textOf, type WithText, withText } from "./deltaText.ts"

/** See the file's head. */
export class HalfCharacters {
  readonly #halves = new Map<string, { readonly delta: WithText; readonly half: string }>()

  /** The delta with what was kept for it, and without a half at its end; undefined if nothing else is in it. */
  join(delta: DeltaEvent): DeltaEvent | undefined {
    if (delta.kind === "embedding") return delta
    const text = textOf(delta)
    const endsInHalf = text !== "" && isHighSurrogate(text.charCodeAt(text.length - 1))
    if (!endsInHalf && this.#halves.size === 0) return delta
    const place = placeOf(delta)
    const whole = (this.#halves.get(place)?.half ?? "") + text
    if (!endsInHalf) {
      // An empty piece does not complete a character.
      if (text === "") return delta
      this.#halves.delete(place)
      return withText(delta, whole)
    }
    const rest = whole.slice(0, -1)
    this.#halves.set(place, { delta, half: whole.slice(-1) })
    return rest === "" ? undefined : withText(delta, rest)
  }

  /** Halves whose other half never came, as they are; forgets them. */
  take(): ReadonlyArray<DeltaEvent> {
    const rests = Array.from(this.#halves.values(), ({ delta, half }) => withText(continued(delta), half))
    this.#halves.clear()
    return rests
  }
}

/** A delta of the same place without what was said already. */
const continued = (delta: WithText): WithText => {
  switch (delta.kind) {
    case "tool_call":
      return { type: "delta", kind: "tool_call", choice: delta.choice, index: delta.index, arguments: "" }
    case "output":
      return delta
    default:
      return { type: "delta", kind: delta.kind, choice: delta.choice, text: "" }
  }
}
