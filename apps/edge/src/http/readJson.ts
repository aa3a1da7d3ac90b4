// The body of a request as JSON, bounded in bytes and in depth while it arrives. Time is bounded by the listener.
import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import { HttpProblem } from "./HttpProblem.ts"
import { jsonErrorOffset } from "./jsonErrorOffset.ts"

/** Deeper JSON than this is an attack on somebody's recursion, not a request. */
const MAX_DEPTH = 64
/** Values in one body, unless the surface says less. A million of them hold the event loop for seconds once a schema walks them. */
const MAX_VALUES = 200_000

/** Refuses what is not `application/json` in UTF-8: a browser can send other types without asking first. */
export const checkJsonType = (request: IncomingMessage): HttpProblem | undefined => {
  const header = request.headers["content-type"]
  const [type = "", ...parameters] = (header ?? "").split(";").map((part) => part.trim().toLowerCase())
  if (type !== "application/json") {
    return new HttpProblem({
      status: 415,
      code: "unsupported_media_type",
      message:
        header === undefined
          ? "the request has no Content-Type; send application/json"
          : "the request's Content-Type is not application/json"
    })
  }
  const charset = parameters.find((parameter) => parameter.startsWith("charset="))?.slice("charset=".length)
  if (charset !== undefined && charset.replace(/"/g, "") !== "utf-8") {
    return new HttpProblem({
      status: 415,
      code: "unsupported_media_type",
      message: "the request's charset is not utf-8"
    })
  }
  const encoding = request.headers["content-encoding"]
  if (encoding !== undefined && encoding !== "identity") {
    return new HttpProblem({
      status: 415,
      code: "unsupported_media_type",
      message: "the request's body is compressed; send it as it is"
    })
  }
  const transfer = request.headers["transfer-encoding"]
  if (transfer !== undefined && transfer.trim().toLowerCase() !== "chunked") {
    return new HttpProblem({
      status: 415,
      code: "unsupported_media_type",
      message: "the request's Transfer-Encoding is more than chunked; send the body as it is",
      close: true
    })
  }
  return undefined
}

/** The problem of a body that is larger than `limit` bytes. */
export const tooLarge = (limit: number): HttpProblem =>
  new HttpProblem({
    status: 413,
    code: "request_too_large",
    message: `the request's body is larger than ${limit} bytes`,
    close: true
  })

/** Refuses a declared length over the limit, before anything is read. */
export const checkDeclaredLength = (request: IncomingMessage, limit: number): HttpProblem | undefined =>
  Number(request.headers["content-length"] ?? 0) > limit ? tooLarge(limit) : undefined

/**
 * Reads and parses the body; at most `limit` bytes of it are held. An empty body is `undefined`. `maxValues` bounds the
 * work of whoever walks the result.
 */
export const readJson = (
  request: IncomingMessage,
  limit: number,
  maxValues: number = MAX_VALUES
): Effect.Effect<unknown, HttpProblem> =>
  Effect.flatMap(readBytes(request, limit), (body) =>
    Effect.try({
      try: () => parseJson(body, maxValues),
      catch: (error) =>
        error instanceof HttpProblem
          ? error
          : new HttpProblem({
              status: 400,
              code: "invalid_request",
              message: "the request's body is not valid JSON"
            })
    })
  )

const readBytes = (request: IncomingMessage, limit: number): Effect.Effect<Uint8Array, HttpProblem> =>
  Effect.callback((resume) => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    const settle = (effect: Effect.Effect<Uint8Array, HttpProblem>) => {
      request.off("data", onData)
      request.off("end", onEnd)
      request.off("error", onBroken)
      request.off("close", onBroken)
      resume(effect)
    }
    const onData = (chunk: Uint8Array) => {
      size += chunk.length
      if (size > limit) {
        request.pause()
        settle(Effect.fail(tooLarge(limit)))
        return
      }
      chunks.push(chunk)
    }
    const onEnd = () =>
      settle(Effect.succeed(chunks.length === 1 ? (chunks[0] ?? new Uint8Array()) : Buffer.concat(chunks)))
    const onBroken = () =>
      settle(
        Effect.fail(
          new HttpProblem({
            status: 400,
            code: "invalid_request",
            message: "the request ended early",
            close: true
          })
        )
      )
    request.on("data", onData)
    request.on("end", onEnd)
    request.on("error", onBroken)
    request.on("close", onBroken)
    return Effect.sync(() => {
      request.off("data", onData)
      request.off("end", onEnd)
      request.off("error", onBroken)
      request.off("close", onBroken)
    })
  })

const invalid = (message: string) => new HttpProblem({ status: 400, code: "invalid_request", message })

/** Parses UTF-8 JSON. Throws an `HttpProblem` that says where it stops being JSON. */
export const parseJson = (body: Uint8Array, maxValues: number = MAX_VALUES): unknown => {
  if (body.length === 0) return undefined
  let text: string
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body)
  } catch {
    throw invalid("the request's body is not valid UTF-8")
  }
  const problem = checkShape(body, maxValues)
  if (problem !== undefined) throw problem
  try {
    return JSON.parse(text)
  } catch {
    throw invalid(`the request's body is not valid JSON${placeIn(text, jsonErrorOffset(text))}`)
  }
}

/** The place of a syntax error, without any of the text around it. */
const placeIn = (text: string, offset: number): string => {
  if (offset >= text.length) return ": it ends too early"
  let line = 1
  let start = 0
  for (let at = 0; at < offset; at++) {
    if (text.charCodeAt(at) !== LINE_FEED) continue
    line += 1
    start = at + 1
  }
  return ` at line ${line}, column ${offset - start + 1}`
}

const LINE_FEED = 0x0a
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Counts depth and values outside of strings: cheaper than parsing, and never recursive. */
const checkShape = (body: Uint8Array, maxValues: number): HttpProblem | undefined => {
  let depth = 0
  let values = 1
  let inString = false
  for (let index = 0; index < body.length; index++) {
    const byte = body[index]
    if (inString) {
      if (byte === BACKSLASH) index++
      else if (byte === QUOTE) inString = false
      continue
    }
    if (byte === QUOTE) inString = true
    else if (byte === 0x7b || byte === 0x5b) {
      depth += 1
      values += 1
      if (depth > MAX_DEPTH) return invalid(`the request's JSON is nested deeper than ${MAX_DEPTH} levels`)
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1
    else if (byte === 0x2c) {
      values += 1
      if (values > maxValues) return invalid(`the request's JSON has more than ${maxValues} values`)
    }
  }
  return undefined
}
