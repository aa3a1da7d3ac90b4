// Waiting in tests: always for something, never for a time. A wait that is not fulfilled within its bound fails and
// says what it waited for.

/** How long a wait may last before the test fails, in milliseconds. Generous: the machine may be busy. */
export const BOUND_MS = 20_000

const LOOK_AGAIN_MS = 10

/** Looks until `probe` gives something other than undefined and false. Errors of the probe count as "not yet". */
export const eventually = async <A>(
  what: string,
  probe: () => A | undefined | false | Promise<A | undefined | false>,
  boundMs = BOUND_MS
): Promise<A> => {
  const end = performance.now() + boundMs
  let last: unknown
  while (true) {
    try {
      const found = await probe()
      if (found !== undefined && found !== false) return found
      last = undefined
    } catch (error) {
      last = error
    }
    if (performance.now() > end) {
      const why = last === undefined ? "" : ` (last: ${last instanceof Error ? last.message : String(last)})`
      throw new Error(`waited ${boundMs} ms in vain: ${what}${why}`)
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
  }
}

/** The promise, or a failure that says what was waited for. */
export const within = async <A>(what: string, promise: Promise<A>, boundMs = BOUND_MS): Promise<A> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${boundMs} ms in vain: ${what}`)), boundMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Runs `work` over the items, at most `width` at once. */
export const inParallel = async <Item, A>(
  items: ReadonlyArray<Item>,
  width: number,
  work: (item: Item, index: number) => Promise<A>
): Promise<Array<A>> => {
  const results: Array<A> = []
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const index = next++
      results[index] = await work(items[index] as Item, index)
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker))
  return results
}
