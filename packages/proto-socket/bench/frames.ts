// How many frames a second the codec and a loopback connection carry, at several numbers of frames per turn of the
// event loop. Prints a table and ends after a few seconds. The figures compare builds on one machine, not machines.

import { connect, createServer, type Socket } from "node:net"
import { FrameConnection, type FrameConnectionOptions } from "../src/FrameConnection.ts"
import { FrameDecoder } from "../src/FrameDecoder.ts"
import { FrameQueue } from "../src/FrameQueue.ts"

const PER_TURN = [1, 8, 64]
const PAYLOAD_BYTES = 64
const CASE_MS = 400

const payload = new Uint8Array(PAYLOAD_BYTES).fill(7)

/** Runs `step`, which handles so many frames per call, for a while; gives frames per second. */
function measure(framesPerStep: number, step: () => void): number {
  for (let i = 0; i < 2_000; i++) step()
  const start = performance.now()
  let steps = 0
  let elapsed = 0
  while (elapsed < CASE_MS) {
    for (let i = 0; i < 100; i++) step()
    steps += 100
    elapsed = performance.now() - start
  }
  return (steps * framesPerStep * 1_000) / elapsed
}

/** One turn's frames as the bytes that a read brings. */
function wire(frames: number): Uint8Array {
  const queue = new FrameQueue()
  for (let i = 0; i < frames; i++) queue.push(payload, "data")
  return Buffer.concat(queue.takeBatch(1 << 20)?.segments ?? [])
}

const decode = (frames: number) => {
  const decoder = new FrameDecoder(1 << 20)
  const chunk = wire(frames)
  return measure(frames, () => decoder.push(chunk, []))
}

const encode = (frames: number) => {
  const queue = new FrameQueue()
  return measure(frames, () => {
    for (let i = 0; i < frames; i++) queue.push(payload, "data")
    queue.takeBatch(1 << 20)
  })
}

const options = (onFrames: FrameConnectionOptions["onFrames"]): FrameConnectionOptions => ({
  maxFrameBytes: 1 << 20,
  writeDeadlineMs: 30_000,
  onFrames,
  onClose: () => undefined
})

/** Both ends in this process, so that the figure holds the cost of sending and of receiving. */
async function loopback(frames: number): Promise<{ perSecond: number; framesPerWrite: number }> {
  const server = createServer().listen(0, "127.0.0.1")
  await new Promise((resolve) => server.once("listening", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("the server has no port")
  const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve))
  const dialled = connect(address.port, "127.0.0.1")
  let received = 0
  const near = new FrameConnection(
    await accepted,
    options((batch) => {
      received += batch.length
    })
  )
  const far = new FrameConnection(
    dialled,
    options(() => undefined)
  )
  const start = performance.now()
  await new Promise<void>((resolve) => {
    const turn = () => {
      if (performance.now() - start > CASE_MS) return resolve()
      // A sender that is as fast as its peer: it stops while the peer has much to read.
      if (far.queuedBytes < 1 << 20) for (let i = 0; i < frames; i++) far.send(payload, "data")
      setImmediate(turn)
    }
    turn()
  })
  const elapsed = performance.now() - start
  const { framesOut, writes } = far.counters
  far.destroy("measured")
  near.destroy("measured")
  server.close()
  return { perSecond: (received * 1_000) / elapsed, framesPerWrite: framesOut / writes }
}

const millions = (perSecond: number) => Number((perSecond / 1e6).toFixed(2))

const table: Record<string, Record<string, number>> = {}
for (const frames of PER_TURN) {
  const { perSecond, framesPerWrite } = await loopback(frames)
  table[`${frames} per turn`] = {
    "decode, M/s": millions(decode(frames)),
    "queue + encode, M/s": millions(encode(frames)),
    "loopback, M/s": millions(perSecond),
    "frames per write": Number(framesPerWrite.toFixed(1))
  }
}
console.log(`frames of ${PAYLOAD_BYTES} bytes, Node ${process.version}`)
console.table(table)
