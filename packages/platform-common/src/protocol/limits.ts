// Bounds on what a single frame may hold, checked on the bytes before any object is built from them. The frame
// limit alone is not enough: 1 MiB of empty repeated elements is half a million objects.

/**
 * Levels of nested messages in a frame, the envelope and each map entry counted. What protobuf's libraries allow
 * by default in C++, Python, Rust and JavaScript, so that a frame within it is readable everywhere.
 */
export const MAX_DEPTH = 100

/**
 * Fields in a frame from a node, nested and unknown ones included. A status with 256 adapters of 100 targets has
 * a third of it; scanning it takes a few milliseconds.
 */
export const MAX_NODE_FRAME_FIELDS = 262_144

/** Nested messages in a frame from a node. Building them takes about 20 ms. */
export const MAX_NODE_FRAME_MESSAGES = 65_536

/** Fields in a frame from the edge. */
export const MAX_EDGE_FRAME_FIELDS = 524_288

/**
 * Nested messages in a frame from the edge. Each value of JSON parameters is one, each member of an object two.
 * Writing as many takes about 50 ms, for all runs together, so one caller cannot have more.
 */
export const MAX_EDGE_FRAME_MESSAGES = 131_072

/** Values of packed fields in a frame from the edge: tokens to embed. OpenAI takes 300,000 in a request. */
export const MAX_EDGE_FRAME_VALUES = 1_048_576

/** Adapters of a node, in its configuration and its status. A box with more than a dozen is unusual. */
export const MAX_ADAPTERS = 256

/** Targets of one adapter. Large model routers offer some hundreds. */
export const MAX_TARGETS = 4096

/** Capabilities of one target. There are six well-known ones. */
export const MAX_CAPABILITIES = 32

/** Runs that a reconnecting node may hold; its 64 KiB frame has room for about 1,500. */
export const MAX_HELD_RUNS = 4096

/** Adapter kinds that a node may name. */
export const MAX_ADAPTER_KINDS = 64

/** Length of one vector. The longest of known models is about 16,000. */
export const MAX_EMBEDDING_VALUES = 65_536

/** Log probabilities in one delta, the alternatives included; about what fits into a 1 MiB frame with real tokens. */
export const MAX_LOGPROBS = 32_768

/** Answers of one run that may have a finish reason of their own. */
export const MAX_CHOICES = 1024

/** UTF-16 units of a message or reason for a person; longer ones are cut. A stack trace fits, a page does not. */
export const MAX_MESSAGE_LENGTH = 4096

/** UTF-16 units of a word of the backend: its error code, its finish reason, its name of the target; cut likewise. */
export const MAX_WORD_LENGTH = 256

/**
 * The most elements that a repeated field may have in one occurrence of its message, by the field's full name. A
 * message that occurs twice where one is expected is merged and may have them twice, within the bounds of the frame.
 */
export const MAX_ELEMENTS: Readonly<Record<string, number>> = {
  "iop.v1.NodeStatus.adapters": MAX_ADAPTERS,
  "iop.v1.AdapterStatus.targets": MAX_TARGETS,
  "iop.v1.Target.capabilities": MAX_CAPABILITIES,
  "iop.v1.RegisterRequest.adapter_kinds": MAX_ADAPTER_KINDS,
  "iop.v1.RegisterRequest.held_runs": MAX_HELD_RUNS,
  "iop.v1.Delta.logprobs": MAX_LOGPROBS,
  "iop.v1.TokenLogprob.top": MAX_LOGPROBS,
  "iop.v1.Embedding.values": MAX_EMBEDDING_VALUES,
  "iop.v1.Completed.choice_finish_reasons": MAX_CHOICES,
  "iop.v1.RegisterAccepted.held_runs": MAX_HELD_RUNS,
  "iop.v1.NodeConfigPayload.adapters": MAX_ADAPTERS,
  "iop.v1.AdapterConfig.targets": MAX_TARGETS
}

/** The bounds of one direction. */
export interface FrameBounds {
  /** Fields, nested and unknown ones included. */
  readonly fields: number
  /** Nested messages, map entries included. */
  readonly messages: number
  /** Values of packed repeated fields. */
  readonly values: number
}

/** Bounds of a frame from a node. */
export const NODE_FRAME_BOUNDS: FrameBounds = {
  fields: MAX_NODE_FRAME_FIELDS,
  messages: MAX_NODE_FRAME_MESSAGES,
  values: MAX_EMBEDDING_VALUES
}

/** Bounds of a frame from the edge. */
export const EDGE_FRAME_BOUNDS: FrameBounds = {
  fields: MAX_EDGE_FRAME_FIELDS,
  messages: MAX_EDGE_FRAME_MESSAGES,
  values: MAX_EDGE_FRAME_VALUES
}
