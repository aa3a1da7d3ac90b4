import { describe, expect, it } from "vitest"
import { FrameBudget } from "./FrameBudget.ts"
import { Handles } from "./Handles.ts"
import { StrayEvents } from "./StrayEvents.ts"
import { TokenThrottle } from "./TokenThrottle.ts"
import { UnregisteredLimit } from "./UnregisteredLimit.ts"

describe("TokenThrottle", () => {
  it("answers so many a minute per address, names the first beyond, and forgets after the minute", () => {
    const throttle = new TokenThrottle(2)
    expect([0, 1, 2, 3].map((at) => throttle.failed("a", at))).toEqual([
      "answer",
      "answer",
      "first_throttled",
      "throttled"
    ])
    expect(throttle.failed("b", 4)).toBe("answer")
    expect(throttle.failed("a", 59_999)).toBe("throttled")
    expect(throttle.failed("a", 60_000)).toBe("answer")
  })

  it("remembers a bounded number of addresses, those that failed last", () => {
    const throttle = new TokenThrottle(1, 3)
    for (const address of ["a", "b", "c"]) throttle.failed(address, 0)
    throttle.failed("a", 1)
    throttle.failed("d", 2)
    expect(throttle.size).toBe(3)
    expect(throttle.failed("a", 3)).toBe("throttled")
    expect(throttle.failed("b", 3)).toBe("answer")
  })
})

describe("UnregisteredLimit", () => {
  it("lets the oldest of the address make room at half, and the oldest of all at the whole", () => {
    const limit = new UnregisteredLimit<string>(4)
    expect(limit.enter("a1", "a")).toBeUndefined()
    expect(limit.enter("a2", "a")).toBeUndefined()
    expect(limit.enter("a3", "a")).toBe("a1")
    expect(limit.enter("b1", "b")).toBeUndefined()
    expect(limit.enter("c1", "c")).toBeUndefined()
    expect(limit.enter("d1", "d")).toBe("a2")
    expect(limit.size).toBe(4)
  })

  it("gives places back once", () => {
    const limit = new UnregisteredLimit<string>(2)
    limit.enter("a1", "a")
    limit.leave("a1")
    limit.leave("a1")
    expect(limit.size).toBe(0)
    expect(limit.enter("a2", "a")).toBeUndefined()
  })
})

describe("StrayEvents", () => {
  it("ends the link at the hundredth within ten seconds, however they lie in time", () => {
    const slow = new StrayEvents()
    for (let at = 0; at < 500; at++) expect(slow.count("unknown", at * 102)).toBeUndefined()
    const fast = new StrayEvents()
    for (let at = 0; at < 99; at++) expect(fast.count("ended", 5000 + at * 100)).toBeUndefined()
    expect(fast.count("unknown", 14_900)).toContain("100 events")
  })

  it("ends the link at the tenth forged one", () => {
    const stray = new StrayEvents()
    for (let at = 0; at < 9; at++) expect(stray.count("forged", at * 60_000)).toBeUndefined()
    expect(stray.count("forged", 1_000_000)).toBe("10 events for runs of other nodes")
  })

  it("tells runs that are over from unknown ones, and remembers a bounded number", () => {
    const stray = new StrayEvents()
    for (let handle = 1; handle <= 5000; handle++) stray.ended(handle)
    expect(stray.kind(5000, false)).toBe("ended")
    expect(stray.kind(1, false)).toBe("unknown")
    expect(stray.kind(5000, true)).toBe("forged")
  })
})

describe("FrameBudget", () => {
  it("takes two thousand small frames at once and two hundred a second for ever", () => {
    const budget = new FrameBudget(0)
    for (let frame = 0; frame < 1999; frame++) expect(budget.spend(2, 0)).toBe(true)
    expect(budget.spend(4096, 0)).toBe(false)
    const steady = new FrameBudget(0)
    for (let at = 0; at < 60_000; at += 6) expect(steady.spend(2, at)).toBe(true)
  })

  it("large frames cost more", () => {
    const budget = new FrameBudget(0)
    let frames = 0
    while (budget.spend(1024 * 1024, 0)) frames += 1
    expect(frames).toBe(7)
  })
})

describe("Handles", () => {
  it("are never 0, never the same on two links, and known by their owner while they are in use", () => {
    const handles = new Handles<string>()
    expect([handles.next("a"), handles.next("b"), handles.next("a")]).toEqual([1, 2, 3])
    expect(handles.owner(2)).toBe("b")
    handles.release(2)
    expect(handles.owner(2)).toBeUndefined()
    expect(handles.next("b")).toBe(4)
    expect(handles.size).toBe(3)
  })
})
