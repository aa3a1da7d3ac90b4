// A run whose events are read and not kept: for answers that are larger than a test wants to hold.
import type { AdminClient, ApiEvent, Submission } from "./AdminClient.ts"
import { SseParser } from "./SseParser.ts"

export interface ReadRun {
  readonly runId: string
  /** The last event. Fails when the stream is cut or reports an error of its own. */
  readonly end: Promise<ApiEvent>
}

/** Submits a run and calls `onEvent` with each of its events, in the order of their arrival. */
export const readRun = async (
  admin: AdminClient,
  submission: Submission,
  onEvent: (event: ApiEvent, runId: string) => void
): Promise<ReadRun> => {
  const response = await fetch(`${admin.base}/admin/v1/runs?events=true`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(submission)
  })
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  const runId = response.headers.get("x-iop-run-id") ?? ""
  const read = async () => {
    const parser = new SseParser()
    let last: ApiEvent | undefined
    for await (const chunk of response.body ?? []) {
      parser.push(chunk)
      for (const { name, data } of parser.events.splice(0)) {
        if (name !== "message") throw new Error(`run ${runId}: ${data}`)
        last = JSON.parse(data) as ApiEvent
        onEvent(last, runId)
      }
    }
    if (last === undefined) throw new Error(`run ${runId} ended without an event`)
    return last
  }
  return { runId, end: read() }
}
