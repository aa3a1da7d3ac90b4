// The output of a run whose consumer wants the whole answer: deltas of the same kind are joined, so that one
// frame goes over the link instead of one per token.

import type { DeltaEvent, TokenLogprob } from "@iop/platform-common/protocol/RunEvent"
import { placeOf, textOf, withText } from "./deltaText.ts"

interface Gathered {
  readonly first: DeltaEvent
  readonly texts: Array<string>
  readonly logprobs: Array<TokenLogprob>
}

/** See the file's head. */
export class GatheredDeltas {
  readonly #byPlace = new Map<string, Gathered>()
  #units = 0

  /** UTF-16 code units of text, and numbers of vectors, that are held. */
  get size(): number {
    return this.#units
  }

  /** Takes a delta. */
  add(delta: DeltaEvent): void {
    const place = placeOf(delta)
    let gathered = this.#byPlace.get(place)
    if (gathered === undefined) {
      gathered = { first: delta, texts: [], logprobs: [] }
      this.#byPlace.set(place, gathered)
    }
    if (delta.kind === "embedding") {
      this.#units += delta.values.length
      return
    }
    const text = textOf(delta)
    this.#units += text.length
    gathered.texts.push(text)
    if ("logprobs" in delta && delta.logprobs !== undefined) gathered.logprobs.push(...delta.logprobs)
  }

  /** What was gathered, in the order of the first piece of each, and forgets it. */
  take(): ReadonlyArray<DeltaEvent> {
    const deltas = Array.from(this.#byPlace.values(), join)
    this.#byPlace.clear()
    this.#units = 0
    return deltas
  }
}

const join = ({ first, logprobs, texts }: Gathered): DeltaEvent => {
  if (first.kind === "embedding") return first
  const joined = withText(first, texts.join(""))
  return logprobs.length > 0 && "logprobs" in joined ? { ...joined, logprobs } : joined
}
