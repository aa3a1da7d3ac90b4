"""The window and the resumption of a run, without a socket: /usr/bin/python3 -m unittest -v test_run"""

import asyncio
import unittest

import wire
from run import Run
from wire import register_pb2, run_event_pb2, run_pb2

WINDOW = 200


class RecordingLink:
    def __init__(self):
        self.frames = []

    def send(self, frame):
        # As bytes at once: a frame that waits in a queue must not change any more.
        self.frames.append(wire.NodeFrame.FromString(wire.encode(frame)[4:]))

    @property
    def events(self):
        return [frame.run_event for frame in self.frames]

    @property
    def seqs(self):
        return [event.seq for event in self.events]


class Letters:
    """Yields forever, and counts how often it was asked."""

    def __init__(self):
        self.asked = 0

    async def run(self, target, run_input):
        while True:
            self.asked += 1
            yield "x" * 20


class Window(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.link, self.over = RecordingLink(), []
        request = run_pb2.RunRequest(run_id="run-1", attempt=1, handle=7, target="t", stream=True)
        self.run_ = Run(request, self.link, register_pb2.LinkLimits(run_window_bytes=WINDOW), self.over.append)
        self.adapter = Letters()

    def tearDown(self):
        self.run_.stop()

    async def settle(self):
        """Until nothing happens any more: the adapter waits for nothing but the window."""
        asked = -1
        while asked != self.adapter.asked:
            asked = self.adapter.asked
            for _ in range(10):
                await asyncio.sleep(0)

    async def start(self):
        self.run_.start(self.adapter)
        await self.settle()

    async def test_a_full_window_stops_the_adapter_and_an_acknowledgement_starts_it_again(self):
        await self.start()
        sent = list(self.link.seqs)
        self.assertEqual(sent, list(range(1, len(sent) + 1)))
        self.assertLessEqual(sum(frame.ByteSize() for frame in self.link.frames), WINDOW)
        self.assertEqual(self.adapter.asked, len(sent))  # the first event is `started`; one piece waits
        self.run_.acknowledge(3)  # two pieces, besides the small `started`
        await self.settle()
        self.assertEqual(self.link.seqs, list(range(1, len(sent) + 3)))

    async def test_the_next_link_gets_what_is_not_acknowledged_under_its_own_handle(self):
        await self.start()
        before = len(self.link.events)
        self.run_.acknowledge(2)
        self.run_.detach()
        await self.settle()
        second = RecordingLink()
        self.run_.resume(second, 900, after_seq=4)
        await self.settle()
        self.assertEqual(second.seqs[: before - 4], list(range(5, before + 1)))
        self.assertEqual(second.seqs, list(range(5, 5 + len(second.seqs))))
        self.assertEqual({event.handle for event in second.events}, {900})
        self.assertLessEqual(sum(frame.ByteSize() for frame in second.frames), WINDOW)

    async def test_the_terminal_event_is_kept_without_room_sent_with_it_and_nothing_follows_it(self):
        await self.start()
        self.run_.stop(cancelled=run_event_pb2.Cancelled(reason="enough" * 10))
        self.run_.end(completed=run_event_pb2.Completed())
        last = self.run_.last
        self.assertEqual(self.link.seqs, list(range(1, last)))
        self.run_.acknowledge(last - 1)
        await self.settle()
        self.assertEqual(self.link.events[-1].WhichOneof("event"), "cancelled")
        self.assertEqual(self.link.seqs, list(range(1, last + 1)))
        self.assertEqual(self.over, [])
        self.run_.acknowledge(last)
        self.assertEqual(self.over, [self.run_])

    async def test_old_acknowledgements_change_nothing_and_those_of_the_future_break_a_rule(self):
        await self.start()
        self.run_.acknowledge(3)
        self.run_.acknowledge(1)
        self.assertEqual(self.run_.acked, 3)
        await self.settle()
        with self.assertRaisesRegex(wire.BrokenRule, "R-FLOW-5"):
            self.run_.acknowledge(self.link.seqs[-1] + 1)

    async def test_a_run_that_is_stopped_before_it_began_still_ends(self):
        self.run_.start(self.adapter)
        self.run_.stop(cancelled=run_event_pb2.Cancelled(reason="at once"))
        await self.settle()
        self.assertEqual([event.WhichOneof("event") for event in self.link.events], ["cancelled"])
        self.assertEqual(self.adapter.asked, 0)

    async def test_text_is_cut_at_code_points_only(self):
        self.run_.window = 100_000
        text = "각👩\u200d👩\u200d👧" * 7
        await self.run_.emit_text(text, 5)
        pieces = [event.delta.text for event in self.link.events]
        self.assertEqual("".join(pieces), text)
        self.assertTrue(all(len(piece.encode()) <= 5 for piece in pieces))


if __name__ == "__main__":
    unittest.main()
