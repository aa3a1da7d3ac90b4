// An HTTP listener of the edge: it binds, bounds every connection in time, checks each request before anything of its
// body is read, and gives it to the surface that owns its path. What a request means is the surface's business.
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { type ApiKeys, open } from "./ApiKeys.ts"
import { HttpProblem } from "./HttpProblem.ts"
import { type HostRule, hostAllowed, originAllowed } from "./hostCheck.ts"
import { ListenError, listenReason, wantsAnotherPort } from "./ListenError.ts"
import { MAX_WAITING, makeRequestLine, type RequestLine } from "./RequestLine.ts"
import { checkDeclaredLength, checkJsonType } from "./readJson.ts"
import { requestId } from "./requestId.ts"

/** How often node:http looks at its header and body clocks; its own default of 30 s would let 10 s last 40. */
const CHECK_CLOCKS_MS = 1000
/** What is still being written when the listener closes gets this long. */
const CLOSE_GRACE_MS = 250
const WRITE_DEADLINE_MS = 30_000

/** What is known about a request when its surface gets it. */
export interface RequestContext {
  readonly requestId: string
  /** The name of the API key's holder, or of the surface when no keys are configured. */
  readonly caller: string
  /** Whether the caller is known by a key. */
  readonly keyed: boolean
  /** The pattern of the request's path, for metrics; set by the surface. Never text of the caller. */
  route: string
}

/** A part of the listener's paths. */
export interface HttpSurface {
  /** For records and metrics, such as `admin`. */
  readonly name: string
  /** Whether the path is this surface's. */
  readonly owns: (path: string) => boolean
  /** Whether a key is needed at all for the path. */
  readonly guarded: (path: string) => boolean
  readonly handle: (request: IncomingMessage, response: ServerResponse, context: RequestContext) => void
  /** Writes a problem in the surface's own shape. */
  readonly refuse: (response: ServerResponse, problem: HttpProblem, requestId: string) => void
}

/** Told about each answered request. */
export type RequestObserver = (request: {
  readonly route: string
  readonly method: string
  readonly status: number
  readonly durationMs: number
}) => void

export interface HttpListenerOptions {
  /** As the configuration calls it: `http` or `ops`. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** Further names for the Host check. */
  readonly hosts: ReadonlyArray<string>
  readonly keys: ApiKeys
  readonly surfaces: ReadonlyArray<HttpSurface>
  /** Milliseconds. */
  readonly headersTimeoutMs: number
  /** Milliseconds, for the whole request. */
  readonly bodyTimeoutMs: number
  /** A caller that takes no byte of an answer for this many milliseconds is cut off. 30,000 by default. */
  readonly writeDeadlineMs?: number
  /** Bytes. */
  readonly maxBody: number
  /** Connections at once; further ones are closed at once. */
  readonly maxConnections?: number
  readonly observe?: RequestObserver
  /** A connection was closed because of `maxConnections`. */
  readonly onRefused?: (remoteAddress: string) => void
}

export interface HttpListener {
  readonly address: AddressInfo
}

/** Binds the listener for as long as the scope lasts. Closing waits for nobody longer than a moment. */
export const listenHttp = (
  options: HttpListenerOptions
): Effect.Effect<HttpListener, ListenError, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>, ListenError>((resume) => {
        const line = makeRequestLine()
        const server = createServer(
          {
            headersTimeout: options.headersTimeoutMs,
            requestTimeout: Math.max(options.bodyTimeoutMs, options.headersTimeoutMs),
            connectionsCheckingInterval: CHECK_CLOCKS_MS,
            noDelay: true
          },
          (request, response) => receive(options, line, request, response)
        )
        // Without this listener node:http says "continue" before anybody has looked at the request.
        server.on("checkContinue", (request, response) => receive(options, line, request, response, true))
        server.setTimeout(options.writeDeadlineMs ?? WRITE_DEADLINE_MS, (socket) => endIdle(line, socket))
        if (options.maxConnections !== undefined) server.maxConnections = options.maxConnections
        server.on("clientError", answerBrokenClient)
        server.on("drop", (dropped) => options.onRefused?.(dropped?.remoteAddress ?? "unknown"))
        server.once("error", (error: NodeJS.ErrnoException) =>
          resume(
            Effect.fail(
              new ListenError({
                listener: options.name,
                address: `${options.host}:${options.port}`,
                reason: listenReason(error),
                anotherPort: wantsAnotherPort(error)
              })
            )
          )
        )
        server.listen(options.port, options.host, () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.callback<void>((resume) => {
          const cut = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS)
          server.close(() => {
            clearTimeout(cut)
            resume(Effect.void)
          })
          server.closeIdleConnections()
        })
    ),
    (server) => {
      const address = server.address()
      if (address === null || typeof address === "string") throw new Error("the listener has no address")
      return { address }
    }
  )

/**
 * Nothing has come or gone on the connection for a while. Waiting for an answer is no fault of the caller, leaving one
 * untaken is; and a connection on which nobody asks anything ends too. The next byte starts the clock again.
 */
const endIdle = (line: RequestLine, socket: Socket): void => {
  if (socket.writableLength > 0 || !line.busy(socket)) socket.destroy()
}

/** A request that node:http itself refuses: too slow, too long, no HTTP. */
const answerBrokenClient = (error: NodeJS.ErrnoException, socket: import("node:stream").Duplex) => {
  // Whoever has not taken the answer before would not take this one, and must not gain time by half a request.
  if (!socket.writable || socket.writableLength > 0 || error.code === "ECONNRESET") {
    socket.destroy()
    return
  }
  const status =
    error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : error.code === "HPE_HEADER_OVERFLOW" ? 431 : 400
  const message =
    status === 408
      ? "the request took too long to arrive"
      : status === 431
        ? "the request's headers are too large"
        : "this is not an HTTP request"
  const code = status === 408 ? "request_timeout" : "invalid_request"
  // Both `message` and `error.message` are where clients of the two surfaces look.
  const body = JSON.stringify({ error: { code, message, type: "invalid_request_error" } })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    () => socket.destroy()
  )
}

const known = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

/** `waits`: the caller sends the body once it is told to continue. */
const receive = (
  options: HttpListenerOptions,
  line: RequestLine,
  request: IncomingMessage,
  response: ServerResponse,
  waits = false
): void => {
  const startedAt = performance.now()
  const id = requestId(request.headers["x-request-id"])
  const context: { requestId: string; caller: string; keyed: boolean; route: string } = {
    requestId: id,
    caller: "",
    keyed: false,
    route: "none"
  }
  response.setHeader("x-request-id", id)
  response.setHeader("x-content-type-options", "nosniff")
  if (options.observe !== undefined) {
    const { observe } = options
    response.once("close", () =>
      observe({
        route: context.route,
        method: known.has(request.method ?? "") ? (request.method ?? "") : "other",
        status: response.statusCode,
        durationMs: performance.now() - startedAt
      })
    )
  }
  const path = pathOf(request.url)
  const surface = path === undefined ? undefined : options.surfaces.find((candidate) => candidate.owns(path))
  const refuse = surface?.refuse ?? refusePlainly
  const answer = () => {
    try {
      const problem = inspect(options, surface, path ?? "", request, context)
      if (problem !== undefined) {
        refuse(response, problem, id)
        return
      }
      if (waits) response.writeContinue()
      surface?.handle(request, response, context)
    } catch {
      // Unknown defects show their request id and nothing else; the surface logs what it knows.
      if (response.headersSent) response.destroy()
      else
        refuse(
          response,
          new HttpProblem({ status: 500, code: "internal", message: `internal error, request ${id}` }),
          id
        )
    }
  }
  line.enter(request, response, answer, () => refuse(response, tooManyAhead(), id))
}

const tooManyAhead = (): HttpProblem =>
  new HttpProblem({
    status: 429,
    code: "too_many_requests",
    message: `more than ${MAX_WAITING} requests wait on this connection; read the answers before you send more`,
    close: true
  })

const pathOf = (url: string | undefined): string | undefined => {
  if (url === undefined || !url.startsWith("/")) return undefined
  const end = url.indexOf("?")
  return end === -1 ? url : url.slice(0, end)
}

/** Everything that is checked before the body is read; undefined when the request may pass. */
const inspect = (
  options: HttpListenerOptions,
  surface: HttpSurface | undefined,
  path: string,
  request: IncomingMessage,
  context: { caller: string; keyed: boolean }
): HttpProblem | undefined => {
  const rule: HostRule = { host: options.host, names: options.hosts }
  if (!hostAllowed(request, rule)) {
    return new HttpProblem({
      status: 421,
      code: "wrong_host",
      message: `this listener does not answer to that Host; add it to listen.${options.name}.hosts if it should`,
      close: true
    })
  }
  if (!originAllowed(request)) {
    return new HttpProblem({
      status: 403,
      code: "forbidden_origin",
      message: "requests of other web pages are not accepted",
      close: true
    })
  }
  if (surface === undefined) {
    return new HttpProblem({ status: 404, code: "not_found", message: "there is nothing at this path" })
  }
  if (surface.guarded(path)) {
    const holder = options.keys.identify(request.headers)
    if (holder === undefined) {
      return new HttpProblem({
        status: 401,
        code: "invalid_api_key",
        message: "no valid API key: send one of the configured api_keys as Authorization: Bearer KEY",
        close: true
      })
    }
    context.keyed = holder !== open
    context.caller = holder === open ? surface.name : holder
  }
  if (request.method === "POST" && !saysNothing(request)) {
    return checkJsonType(request) ?? checkDeclaredLength(request, options.maxBody)
  }
  return undefined
}

/** Whether there is neither a body nor a type of one. */
const saysNothing = ({ headers }: IncomingMessage): boolean =>
  headers["content-type"] === undefined &&
  headers["transfer-encoding"] === undefined &&
  Number(headers["content-length"] ?? 0) === 0

const refusePlainly = (response: ServerResponse, problem: HttpProblem): void =>
  writeProblem(response, problem, { error: { code: problem.code, message: problem.message } })

/** Writes a problem with the headers it calls for and the given body; ends the connection where it has to. */
export const writeProblem = (
  response: ServerResponse,
  problem: HttpProblem,
  body: unknown,
  retryAfter?: number
): void => {
  const text = JSON.stringify(body)
  response.statusCode = problem.status
  response.setHeader("content-type", "application/json; charset=utf-8")
  response.setHeader("content-length", Buffer.byteLength(text))
  if (retryAfter !== undefined) response.setHeader("retry-after", retryAfter)
  if (problem.status === 401) response.setHeader("www-authenticate", "Bearer")
  if (problem.allow !== undefined) response.setHeader("allow", problem.allow.join(", "))
  const { req } = response
  if (problem.close === true || !req.complete) {
    // A body that nobody reads must not be taken for the next request, nor be waited for.
    response.setHeader("connection", "close")
    response.end(text, () => req.socket.destroySoon())
    return
  }
  response.end(text)
}
