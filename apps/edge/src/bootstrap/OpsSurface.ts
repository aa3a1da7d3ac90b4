// What watches over an edge asks: is it alive, does it take work, how does it do.
import type { HttpSurface } from "../http/HttpListener.ts"
import { writeProblem } from "../http/HttpListener.ts"
import { HttpProblem, retryAfterSeconds } from "../http/HttpProblem.ts"

export interface OpsSources {
  /** Whether the edge takes no new runs because it is stopping. */
  readonly draining: () => boolean
  /** The metrics page and its type. */
  readonly metrics: () => Promise<{ readonly body: string; readonly contentType: string }>
}

const paths = new Set(["/metrics", "/healthz", "/readyz"])

export const makeOpsSurface = (sources: OpsSources): HttpSurface => {
  const refuse: HttpSurface["refuse"] = (response, problem) =>
    writeProblem(
      response,
      problem,
      { error: { code: problem.code, message: problem.message } },
      retryAfterSeconds(problem)
    )
  // Whoever asks while the page is being made gets the same page.
  let page: ReturnType<OpsSources["metrics"]> | undefined
  const metrics = () => {
    page ??= sources.metrics().finally(() => {
      page = undefined
    })
    return page
  }
  return {
    name: "ops",
    owns: () => true,
    guarded: () => false,
    refuse,
    handle: (request, response, context) => {
      const path = (request.url ?? "").split("?", 1)[0] ?? ""
      if (!paths.has(path)) {
        const message = "there is nothing at this path; see /metrics, /healthz and /readyz"
        refuse(response, new HttpProblem({ status: 404, code: "not_found", message }), context.requestId)
        return
      }
      context.route = path
      if (request.method !== "GET" && request.method !== "HEAD") {
        const allow = ["GET", "HEAD"]
        const message = "this path takes GET and HEAD"
        const problem = new HttpProblem({ status: 405, code: "method_not_allowed", message, allow })
        refuse(response, problem, context.requestId)
        return
      }
      const answer = (status: number, type: string, text: string) => {
        response.writeHead(status, {
          "content-type": type,
          "content-length": Buffer.byteLength(text),
          "cache-control": "no-store"
        })
        response.end(request.method === "HEAD" ? undefined : text)
      }
      const json = "application/json; charset=utf-8"
      if (path === "/healthz") answer(200, json, `{"status":"ok"}\n`)
      else if (path === "/readyz") {
        if (sources.draining()) answer(503, json, `{"ready":false,"why":"the edge is stopping"}\n`)
        else answer(200, json, `{"ready":true}\n`)
      } else {
        metrics().then(
          ({ body, contentType }) => answer(200, contentType, body),
          () => {
            const message = `the metrics could not be collected, request ${context.requestId}`
            refuse(response, new HttpProblem({ status: 500, code: "internal", message }), context.requestId)
          }
        )
      }
    }
  }
}
