// The faults that the fake node commits when it is told to, as JSON: on a line of its standard input, in `--faults`,
// or as a run's `fault` parameter.

import { Schema } from "effect"

const Count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))

/** Faults that happen at once. */
const Immediate = Schema.Union([
  /** The whole process stands still, as if it were stopped, for `ms`. */
  Schema.Struct({
    fault: Schema.Literal("freeze"),
    ms: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_600_000 }))
  }),
  /** The link carries nothing any more, in one direction or both, but is not closed; until it has ended. */
  Schema.Struct({
    fault: Schema.Literal("drop_without_fin"),
    direction: Schema.optionalKey(Schema.Literals(["both", "in", "out"]))
  }),
  /** The link is cut; the node dials again. */
  Schema.Struct({ fault: Schema.Literal("cut") }),
  /** Frames of random bytes. */
  Schema.Struct({ fault: Schema.Literal("garbage"), bytes: Schema.optionalKey(Count) }),
  /** Events of a handle that the edge never gave. */
  Schema.Struct({ fault: Schema.Literal("unknown_handle"), times: Schema.optionalKey(Count) }),
  /** Events of a handle that is another's: the next `times` small numbers from `handle` on. */
  Schema.Struct({
    fault: Schema.Literal("foreign_event"),
    handle: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff_ffff })),
    times: Schema.optionalKey(Count)
  }),
  /** Status frames, as fast as they go. */
  Schema.Struct({ fault: Schema.Literal("status_flood"), times: Schema.optionalKey(Count) })
])

/** Faults that wait for the next event of a run (`run`: its id; absent: any) that they can happen to. */
const Armed = Schema.Struct({
  fault: Schema.Literals([
    /** A delta is sent twice. */
    "duplicate_event",
    /** A delta is sent again with other content. */
    "changed_event",
    /** A delta is sent after its successor. */
    "out_of_order",
    /** A delta is not sent. */
    "gap",
    /** Something follows the terminal event. */
    "after_terminal",
    /** `started` comes twice. */
    "started_twice",
    /** The edge's cancel does not reach the node. */
    "ignore_cancel"
  ]),
  run: Schema.optionalKey(Schema.String)
})

/** One fault. */
export const Fault = Schema.Union([Immediate, Armed])
export type Fault = typeof Fault.Type
export type ImmediateFault = typeof Immediate.Type
export type ArmedFault = typeof Armed.Type

/** Reads a fault; fails with a sentence that names what is wrong with it. */
export const decodeFault = Schema.decodeUnknownResult(Fault, { onExcessProperty: "error" })
