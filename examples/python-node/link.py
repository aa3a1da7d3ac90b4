"""One connection to the edge: whole frames in, whole frames out with control before data, and the watch over both."""

import asyncio
from collections import deque

import wire

SLICE = 65_536  # bytes of one write; a Pong waits for one of these at most
NO_PROGRESS = 30  # seconds in which one slice must leave (R-LINK-2)
LAST_WORDS = 2  # seconds that the edge has to close after our Goodbye


async def read_frame(reader, limit):
    """The next EdgeFrame, or None if the connection ended between frames."""
    head = b""
    try:
        head = await reader.readexactly(4)
        return wire.decode(await reader.readexactly(wire.check_length(head, limit)))
    except asyncio.IncompleteReadError as cut:
        if head or cut.partial:
            raise wire.BrokenRule("R-FRAME-4: the connection ended within a frame") from cut
        return None


class Link:
    def __init__(self, reader, writer):
        # asyncio sets TCP_NODELAY on every TCP connection.
        self.reader, self.writer = reader, writer
        self.writer.transport.set_write_buffer_limits(high=0)  # drain() returns when the kernel has it all
        self.control, self.data = deque(), deque()
        self.wake = asyncio.Event()
        self.ended_because = None  # set when this side gave up the link
        self.finishing = False
        self.max_edge_frame = wire.MAX_EDGE_FRAME
        self.alive_at = now()
        self.tasks = [asyncio.ensure_future(self.write_queues())]

    async def read(self):
        frame = await read_frame(self.reader, self.max_edge_frame)
        self.alive_at = now()  # any complete frame is life, an unfinished one is not
        return frame

    def send(self, frame):
        """Queues data: RegisterRequest, NodeStatus, RunEvent."""
        self.queue(self.data, frame)

    def send_first(self, frame):
        """Queues control, which overtakes data: Pong."""
        self.queue(self.control, frame)

    def queue(self, frames, frame):
        if not self.finishing:  # nothing follows a Goodbye (R-LINK-4)
            frames.append(wire.encode(frame))
            self.wake.set()

    def finish(self, goodbye):
        """Sends the Goodbye after everything queued and ends our side; read() goes on until the edge ends its own."""
        self.send(goodbye)
        self.finishing = True

    def give_up(self, because):
        """Closes at once, without waiting for queued bytes."""
        self.ended_because = self.ended_because or because
        self.writer.transport.abort()

    def watch(self, interval, dead_after):
        """Starts to end the link once nothing came for dead_after intervals (in seconds)."""
        self.tasks.append(asyncio.ensure_future(self.end_when_silent(interval, dead_after)))

    async def end_when_silent(self, interval, dead_after):
        step = interval / 4
        while True:
            slept = now()
            await asyncio.sleep(step)
            if now() - slept > step + interval / 2:
                # Not the edge was late but this process: read first, and wait one interval more.
                self.alive_at = max(self.alive_at, now() - (dead_after - 1) * interval)
            elif now() - self.alive_at > dead_after * interval:
                return self.give_up(f"the edge was silent for {dead_after * interval:g} s")

    async def write_queues(self):
        try:
            while not self.finishing or self.control or self.data:
                if not (self.control or self.data):
                    self.wake.clear()
                    await self.wake.wait()
                batch = bytearray()  # the events of one moment leave in one write
                while (self.control or self.data) and len(batch) < SLICE:
                    batch += (self.control or self.data).popleft()
                for at in range(0, len(batch), SLICE):
                    self.writer.write(bytes(batch[at : at + SLICE]))
                    await asyncio.wait_for(self.writer.drain(), NO_PROGRESS)
            # Ending only our side, not the socket: closing one with unread bytes resets it and may lose the Goodbye.
            if self.writer.can_write_eof():
                self.writer.write_eof()
            await asyncio.sleep(LAST_WORDS)
            self.give_up("the edge did not close after our Goodbye")
        except asyncio.TimeoutError:
            self.give_up(f"the edge took no bytes for {NO_PROGRESS} s")
        except OSError as error:
            self.give_up(f"the connection broke: {error}")

    def close(self):
        for task in self.tasks:
            task.cancel()
        self.writer.transport.abort()


def now():
    """Monotonic seconds."""
    return asyncio.get_running_loop().time()
