// The proxy that the other tests make trouble with, tested by itself.
import { connect, createServer, type Socket } from "node:net"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { ChaosProxy } from "./harness/ChaosProxy.ts"
import { eventually, within } from "./harness/waiting.ts"

let cleanup: AsyncDisposableStack
/** What the far end received, read by read, and its sockets. */
let reads: Array<Buffer>
let far: Array<Socket>
let proxy: ChaosProxy

beforeEach(async () => {
  cleanup = new AsyncDisposableStack()
  reads = []
  far = []
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    far.push(socket)
    socket.on("data", (chunk) => reads.push(chunk))
    socket.on("error", () => undefined)
    cleanup.defer(() => void socket.destroy())
  })
  cleanup.defer(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("the server has no port")
  proxy = await ChaosProxy.open(cleanup, { host: "127.0.0.1", port: address.port })
})

afterEach(() => cleanup.disposeAsync())

const dial = async () => {
  const chunks: Array<Buffer> = []
  const socket = connect({ ...proxy.address, noDelay: true, allowHalfOpen: true })
  cleanup.defer(() => void socket.destroy())
  let error: NodeJS.ErrnoException | undefined
  let ended = false
  socket.on("data", (chunk: Buffer) => chunks.push(chunk))
  socket.on("error", (cause) => {
    error = cause
  })
  socket.on("end", () => {
    ended = true
  })
  await within("a connection", new Promise<void>((resolve) => socket.once("connect", resolve)))
  const connections = proxy.connections
  await eventually("the far end of the connection", () => far.length >= Math.max(1, connections))
  return {
    socket,
    chunks,
    text: () => Buffer.concat(chunks).toString(),
    error: () => error,
    ended: () => ended
  }
}

const received = () => Buffer.concat(reads).toString()

describe("the chaos proxy", () => {
  it("passes bytes and ends both ways in calm weather", async () => {
    const near = await dial()
    near.socket.write("there")
    await eventually("the bytes", () => received() === "there")
    far[0]!.write("back")
    await eventually("the answer", () => near.text() === "back")
    near.socket.end()
    await eventually("the end at the far side", () => far[0]!.readableEnded)
    far[0]!.end()
    await eventually("the end at the near side", near.ended)
  })

  it("slices into single bytes without losing their order", async () => {
    proxy.weather.up.slice = 1
    const near = await dial()
    const text = "a frame of several bytes"
    near.socket.write(text)
    await eventually("all bytes", () => received().length === text.length)
    expect(received()).toBe(text)
    expect(reads.length).toBeGreaterThan(text.length / 2)
  })

  it("delays without changing the order", async () => {
    proxy.weather.up.delayMs = 50
    const near = await dial()
    const start = performance.now()
    near.socket.write("one ")
    near.socket.write("two")
    await eventually("all bytes", () => received() === "one two")
    expect(performance.now() - start).toBeGreaterThanOrEqual(45)
  })

  it("loses one direction silently and leaves the other alone", async () => {
    const near = await dial()
    proxy.lose("up")
    near.socket.write("lost")
    near.socket.end()
    far[0]!.write("arrives")
    await eventually("the other direction", () => near.text() === "arrives")
    expect(reads).toEqual([])
    expect(far[0]!.readableEnded).toBe(false)
    expect(near.error()).toBeUndefined()
  })

  it("loses both directions silently", async () => {
    const near = await dial()
    proxy.lose("up", "down")
    near.socket.write("lost")
    far[0]!.write("lost too")
    // A second connection in calm weather shows that the bytes above had every chance to arrive.
    proxy.thaw()
    const other = await dial()
    other.socket.write("later")
    await eventually("the later bytes", () => received().includes("later"))
    expect(near.error()).toBeUndefined()
    expect(near.ended()).toBe(false)
  })

  it("cuts with a reset at both ends", async () => {
    const near = await dial()
    const farErrors: Array<string | undefined> = []
    far[0]!.on("error", (error: NodeJS.ErrnoException) => farErrors.push(error.code))
    proxy.cut()
    await eventually("a reset at the near end", () => near.error()?.code === "ECONNRESET")
    await eventually("a reset at the far end", () => farErrors.includes("ECONNRESET"))
    await eventually("no connection to be left", () => proxy.open === 0)
  })

  it("keeps bytes while it is frozen and gives them back in order", async () => {
    const near = await dial()
    proxy.freeze()
    near.socket.write("first ")
    far[0]!.write("down")
    const other = await dial()
    other.socket.write("")
    expect(reads).toEqual([])
    proxy.thaw()
    near.socket.write("second")
    await eventually("what waited and what came after", () => received() === "first second")
    await eventually("the other direction", () => near.text() === "down")
  })

  it("moves to another address and keeps open connections", async () => {
    const near = await dial()
    const old = proxy.address
    await proxy.move()
    expect(proxy.address.port).not.toBe(old.port)
    const refused = connect(old)
    cleanup.defer(() => void refused.destroy())
    const code = await within(
      "a refusal at the old address",
      new Promise<string | undefined>((resolve) => {
        refused.once("error", (error: NodeJS.ErrnoException) => resolve(error.code))
      })
    )
    expect(code).toBe("ECONNREFUSED")
    const other = await dial()
    near.socket.write("old ")
    await eventually("bytes of the old connection", () => received() === "old ")
    other.socket.write("new")
    await eventually("bytes of the new connection", () => received() === "old new")
  })

  it("turns the path of open connections into a hole and leaves later ones alone", async () => {
    const near = await dial()
    proxy.blackhole("up", "down")
    near.socket.write("lost")
    const other = await dial()
    other.socket.write("kept")
    await eventually("bytes of the later connection", () => received() === "kept")
    near.socket.end()
    far[1]!.write("down")
    await eventually("the other direction of it", () => other.text() === "down")
    expect(received()).toBe("kept")
    expect(far[0]!.readableEnded).toBe(false)
  })

  it("refuses new connections while it is told to, and dials from the address that it is told", async () => {
    proxy.refuses = true
    const refused = connect(proxy.address)
    cleanup.defer(() => void refused.destroy())
    await within(
      "a reset",
      new Promise<void>((resolve) => {
        refused.once("error", () => resolve())
      })
    )
    proxy.refuses = false
    proxy.source = "127.0.0.9"
    const near = await dial()
    near.socket.write("here")
    await eventually("bytes of the new connection", () => received() === "here")
    expect(far.at(-1)!.remoteAddress).toContain("127.0.0.9")
  })
})
