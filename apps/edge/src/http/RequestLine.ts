// One request at a time for each connection: requests that were sent ahead wait until the one before them is answered and
// its answer taken, so that a connection never makes the edge work on, or hold, more than one answer.
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Requests that may wait on one connection; clients that send ahead at all send a few. */
export const MAX_WAITING = 16
/** What is read in one piece may hold more requests than may wait; a connection that goes on after that is destroyed. */
const MAX_DROPPED = 4096

interface Line {
  answering: boolean
  readonly waiting: Array<() => void>
  /** Requests after the one that was refused: nothing answers them, the connection ends before. */
  dropped: number
  refused: boolean
}

export interface RequestLine {
  /**
   * Calls `answer` as soon as the requests before it on this connection are answered, or `refuse` in its place when too
   * many wait. After a refusal nothing of the connection is answered any more: `refuse` has to end it.
   */
  readonly enter: (
    request: IncomingMessage,
    response: ServerResponse,
    answer: () => void,
    refuse: () => void
  ) => void
  /** Whether a request of this connection is being answered or waits for it. */
  readonly busy: (socket: Socket) => boolean
}

export const makeRequestLine = (): RequestLine => {
  const lines = new WeakMap<Socket, Line>()
  const lineOf = (socket: Socket): Line => {
    const known = lines.get(socket)
    if (known !== undefined) return known
    const line: Line = { answering: false, waiting: [], dropped: 0, refused: false }
    lines.set(socket, line)
    return line
  }
  return {
    enter: (request, response, answer, refuse) => {
      const { socket } = request
      const line = lineOf(socket)
      if (line.refused) {
        line.dropped += 1
        // Reading the bodies of earlier requests lets the socket read on.
        socket.pause()
        if (line.dropped > MAX_DROPPED) socket.destroy()
        return
      }
      const next = () => {
        line.answering = false
        if (socket.destroyed) line.waiting.length = 0
        else line.waiting.shift()?.()
      }
      const begin = (work: () => void) => () => {
        line.answering = true
        response.once("close", next)
        work()
      }
      if (line.waiting.length >= MAX_WAITING) {
        line.refused = true
        line.waiting.push(begin(refuse))
        socket.pause()
        return
      }
      if (line.answering) line.waiting.push(begin(answer))
      else begin(answer)()
    },
    busy: (socket) => lines.get(socket)?.answering === true
  }
}
