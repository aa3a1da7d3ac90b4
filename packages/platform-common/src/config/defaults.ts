// Every default of the configuration, once, with the reason for its value. The schema refers to these constants and
// so does whoever needs a figure without a configuration (tests, the bundled profile). Durations are Durations, sizes
// are numbers of bytes.

import { Duration } from "effect"

/** The name of an edge that was not given one; it only shows in listings. */
export const EDGE_ID = "edge"
/** Long enough for most answers to end, short enough for a supervisor that kills after a minute. */
export const EDGE_DRAIN_TIMEOUT = Duration.seconds(30)

/** Nodes dial in from other machines. */
export const NODES_HOST = "0.0.0.0"
/** Three neighbouring ports without a registered service. */
export const NODES_PORT = 7610
/** Clients are let in from other machines on purpose, not by accident. */
export const HTTP_HOST = "127.0.0.1"
/** Next to the port of the nodes. */
export const HTTP_PORT = 7611
/** Metrics tell a stranger a lot. */
export const OPS_HOST = "127.0.0.1"
/** Next to the port of the HTTP API. */
export const OPS_PORT = 7612
/** Openness without keys is said aloud or not at all. */
export const LISTEN_INSECURE = false

/** A node's runs get as long as the edge's. */
export const NODE_DRAIN_TIMEOUT = Duration.seconds(30)
/** A model server that comes or goes is noticed within one look; a look is one cheap request. */
export const NODE_PROBE_INTERVAL = Duration.seconds(10)
/** One run at a time is right for a single GPU that nobody has described yet. */
export const ADAPTER_SLOTS = 1
/** Any fixed seed makes the mock adapter repeat itself. */
export const MOCK_SEED = 1

/** A node sends its registration at once; five seconds forgive a bad link and nothing else. */
export const REGISTER_TIMEOUT = Duration.seconds(5)
/** Three of these are noticed as death within 15 s, at a cost of a few bytes. */
export const HEARTBEAT_INTERVAL = Duration.seconds(5)
/** One late answer is a hiccup, two stop new runs. */
export const HEARTBEAT_SUSPECT_AFTER = 2
/** Three late answers end the link. */
export const HEARTBEAT_DEAD_AFTER = 3
/** A living node answers a ping in milliseconds; the newcomer waits no longer than a person would. */
export const TAKEOVER_PROBE = Duration.seconds(2)
/** A peer that takes no byte for this long is gone, whatever its socket says. */
export const WRITE_DEADLINE = Duration.seconds(30)
/** About a minute of tokens: bridges a short loss of the link, costs little for each run. */
export const RUN_WINDOW = 256 * 1024
/** A registration with a thousand held runs fits; a stranger can make the edge hold no more. */
export const MAX_REGISTER_FRAME = 64 * 1024
/** Hostile frames of this size are decoded in a fraction of a heartbeat; honest ones are far smaller. */
export const MAX_NODE_FRAME = 1024 * 1024
/** Prompts with images; the same as the largest HTTP body. */
export const MAX_EDGE_FRAME = 32 * 1024 * 1024
/** A reboot of a switch or a Wi-Fi hand-over. */
export const RESUME_GRACE = Duration.seconds(30)
/** A person who mistypes is not locked out, a guesser gets nowhere. */
export const FAILED_TOKENS_PER_MINUTE = 10

/** More waiting runs than a small group works off within the queue's timeout. */
export const QUEUE_LIMIT = 100
/** Official clients give up after minutes; a minute in a queue is the most that a person accepts. */
export const QUEUE_TIMEOUT = Duration.seconds(60)
/** Loading a big model from a disk takes a minute or two. */
export const FIRST_EVENT_TIMEOUT = Duration.seconds(120)
/** A slow box thinks for a while between two tokens, but not for longer than it took to load. */
export const IDLE_TIMEOUT = Duration.seconds(120)
/** A backend stops within a token or two; what has not stopped by then is not waited for. */
export const CANCEL_TIMEOUT = Duration.seconds(5)
/** A client that takes nothing for this long has gone without saying so. */
export const CONSUMER_TIMEOUT = Duration.seconds(30)
/** The first try and two more: a fault that three nodes share is the run's own. */
export const MAX_ATTEMPTS = 3
/** A long answer whole, so that a consumer may read it from the start. */
export const RELAY_LOG = 1024 * 1024
/** A day of a small team, a few MB. */
export const HISTORY = 1000
/** Fewer can be bad luck. */
export const CIRCUIT_FAILURES = 5
/** Failures further apart than this are not one fault. */
export const CIRCUIT_WINDOW = Duration.seconds(10)
/** A crashed model server is back about then; one probe run is lost if not. */
export const CIRCUIT_OPEN_FOR = Duration.seconds(10)
/** A failure after a second of work is the run's; one before it is the backend's. */
export const CIRCUIT_FAST = Duration.seconds(1)

/** Headers fit into one or two packets. */
export const HTTP_HEADERS_TIMEOUT = Duration.seconds(10)
/** 32 MiB over 5 Mbit/s. */
export const HTTP_BODY_TIMEOUT = Duration.seconds(60)
/** Several images in one prompt. */
export const HTTP_MAX_BODY = 32 * 1024 * 1024
/** Most failures are known by then and get their own status; proxies wait longer than that. */
export const HTTP_STATUS_HOLD = Duration.seconds(10)
/** Below every proxy's idle timeout that is known. */
export const HTTP_SSE_COMMENT = Duration.seconds(10)

/** What an operator reads day by day. */
export const LOG_LEVEL = "info"
/** Pretty for a person at a terminal, JSON for everything else. */
export const LOG_FORMAT = "auto"
/** Prompts and answers are not the operator's to read. */
export const LOG_TEXT = false
/** The service name under which traces arrive. */
export const TRACING_SERVICE_NAME = "iop-edge"
