// The output of a run whose consumer wants the whole answer: deltas of the same kind are joined, so that one
// frame goes over the link instead of one per token.

import type { DeltaEvent, TokenLogprob } from "@iop/platform-common/protocol/RunEvent"

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
    const text = delta.kind === "tool_call" ? delta.arguments : delta.text
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

const placeOf = (delta: DeltaEvent): string => {
  switch (delta.kind) {
    case "tool_call":
    case "embedding":
      return `${delta.kind} ${delta.choice} ${delta.index}`
    case "output":
      return `output ${delta.choice} ${delta.channel}`
    default:
      return `${delta.kind} ${delta.choice}`
  }
}

const join = ({ first, logprobs, texts }: Gathered): DeltaEvent => {
  const text = texts.join("")
  switch (first.kind) {
    case "embedding":
      return first
    case "tool_call":
      return { ...first, arguments: text }
    case "output":
      return { ...first, text }
    default:
      return { ...first, text, ...(logprobs.length > 0 ? { logprobs } : {}) }
  }
}
