"""One attempt of one run: its numbered events, which of them the edge has, and the window that holds back its adapter."""

import asyncio
from collections import deque

import wire
from adapters import BackendError, InvalidInput
from wire import run_event_pb2 as pb

LAST_SEQ = 2**32 - 1
ENVELOPE = 64  # bytes of a delta's frame that are not its text, at most
STREAM_BYTES = 16_384  # of text in one streamed delta, at most
MAX_GATHERED = 33_554_432  # characters of an answer that nobody reads along
MAX_MESSAGE = 4_096


class Run:
    def __init__(self, request, link, limits, on_over):
        self.request, self.key = request, (request.run_id, request.attempt)
        self.link, self.handle = link, request.handle
        self.window = limits.run_window_bytes or wire.RUN_WINDOW
        self.max_text = (limits.max_node_frame_bytes or wire.MAX_NODE_FRAME) - ENVELOPE
        self.on_over = on_over  # called once the edge has the terminal event
        self.last = self.acked = 0
        self.sent, self.sent_bytes = deque(), 0  # (event, N): on this link, not acknowledged
        self.unsent, self.unsent_bytes = deque(), 0
        self.ended = False
        self.room = asyncio.Event()
        self.task = None

    # The events

    def start(self, adapter):
        self.task = asyncio.ensure_future(self.work(adapter))

    async def work(self, adapter):
        request = self.request
        try:
            pieces = adapter.run(request.target, request.input)
            await self.emit(started=pb.Started(backend_target=request.target))
            gathered, held = [], 0
            async for text in pieces:
                if request.stream:
                    await self.emit_text(text, min(self.max_text, STREAM_BYTES))
                else:
                    gathered.append(text)
                    held += len(text)
                    if held > MAX_GATHERED:
                        raise OverflowError(f"an answer in one piece may have {MAX_GATHERED} characters here")
                    await asyncio.sleep(0)
            await self.emit_text("".join(gathered), self.max_text)
            self.end(completed=pb.Completed(finish_reason=pb.FINISH_REASON_STOP))
        except InvalidInput as error:
            self.fail(pb.FAILURE_CODE_INVALID_INPUT, error, retryable=False)
        except BackendError as error:
            self.fail(pb.FAILURE_CODE_ADAPTER_ERROR, error, retryable=error.may_pass)
        except OverflowError as error:
            self.fail(pb.FAILURE_CODE_LIMIT, error, retryable=False)
        except Exception as error:  # a defect of this node still ends the run (R-RUN-6)
            self.fail(pb.FAILURE_CODE_INTERNAL, f"{type(error).__name__}: {error}", retryable=True)

    async def emit_text(self, text, size):
        data, at = wire.clean(text).encode(), 0
        while at < len(data):
            end = min(at + size, len(data))
            while end < len(data) and data[end] & 0xC0 == 0x80:  # cut at code points only
                end -= 1
            await self.emit(delta=pb.Delta(text=data[at:end].decode()))
            at = end

    async def emit(self, **event):
        """Keeps an event; before that it waits while the window is full, and with it the adapter of this run alone."""
        if self.last >= LAST_SEQ - 1:  # the last number is the terminal event's
            raise OverflowError("the run produced more events than there are numbers")
        event = self.frame(**event)
        while self.last > self.acked and self.sent_bytes + self.unsent_bytes + event.ByteSize() > self.window:
            self.room.clear()
            await self.room.wait()
        self.keep(event)
        await asyncio.sleep(0)  # an adapter that never waits must not keep the link from its Pongs

    def fail(self, code, error, retryable):
        self.end(failed=pb.Failed(code=code, message=wire.clean(str(error))[:MAX_MESSAGE], retryable=retryable))

    def end(self, **terminal):
        """Keeps the terminal event, which waits for no room. Only the first one counts."""
        if not self.ended:
            self.ended = True
            self.keep(self.frame(**terminal))

    def stop(self, **terminal):
        """Stops the work; with a terminal event that says why, or with none if nobody wants one."""
        if self.task:
            self.task.cancel()
        if terminal:
            self.end(**terminal)
        self.ended = True

    def fail_and_stop(self, message):
        code = pb.FAILURE_CODE_INTERNAL
        self.stop(failed=pb.Failed(code=code, message=message, retryable=True))

    # The window

    def frame(self, **event):
        # Its handle is set when it is sent: the next link gives the run another.
        return wire.NodeFrame(run_event=pb.RunEvent(handle=self.handle, seq=self.last + 1, **event))

    def keep(self, frame):
        self.last += 1
        self.unsent.append(frame)
        self.unsent_bytes += frame.ByteSize()
        self.pump()

    def pump(self):
        """Sends what the window allows: a lone event always, more while their bytes fit."""
        while self.link and self.unsent:
            frame = self.unsent[0]
            self.unsent_bytes -= frame.ByteSize()
            frame.run_event.handle = self.handle
            size = frame.ByteSize()
            if self.sent and self.sent_bytes + size > self.window:
                self.unsent_bytes += size
                return
            self.sent.append((self.unsent.popleft(), size))
            self.sent_bytes += size
            self.link.send(frame)

    def acknowledge(self, seq):
        if seq > self.last - len(self.unsent):
            raise wire.BrokenRule(f"R-FLOW-5: an acknowledgement of event {seq}, which was not sent")
        while self.sent and self.sent[0][0].run_event.seq <= seq:
            self.sent_bytes -= self.sent.popleft()[1]
        self.moved(seq)

    def detach(self):
        """The link has ended: everything that is not acknowledged is to be sent again."""
        self.link = None
        self.unsent.extendleft(frame for frame, _ in reversed(self.sent))
        self.unsent_bytes += self.sent_bytes
        self.sent, self.sent_bytes = deque(), 0

    def resume(self, link, handle, after_seq):
        self.link, self.handle = link, handle
        while self.unsent and self.unsent[0].run_event.seq <= after_seq:
            self.unsent_bytes -= self.unsent.popleft().ByteSize()
        self.moved(after_seq)

    def moved(self, acked):
        self.acked = max(self.acked, acked)
        self.room.set()
        self.pump()
        if self.ended and self.acked == self.last:
            self.on_over(self)
