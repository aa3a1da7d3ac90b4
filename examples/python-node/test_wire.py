"""The codec against the golden frames of proto/testdata: /usr/bin/python3 -m unittest -v test_wire"""

import asyncio
import json
import unittest

from google.protobuf import json_format

import wire
from link import read_frame

DATA = wire.PROTO / "testdata"


def hex_of(file):
    return bytes.fromhex("".join(file.with_suffix(".hex").read_text().split()))


def names(folder):
    found = sorted((DATA / folder).glob("*.json"))
    assert found, f"no golden frames in {DATA / folder}"
    return found


async def frames_of(chunks, limit=wire.MAX_EDGE_FRAME):
    """What the reader makes of a connection that brings these chunks and then ends."""
    reader = asyncio.StreamReader()

    async def feed():
        for chunk in chunks:
            reader.feed_data(chunk)
            await asyncio.sleep(0)
        reader.feed_eof()

    feeding = asyncio.ensure_future(feed())
    frames = []
    while (frame := await read_frame(reader, limit)) is not None:
        frames.append(frame)
    await feeding
    return frames


class GoldenFrames(unittest.TestCase):
    def test_reads_every_frame_of_the_edge(self):
        for file in names("edge"):
            with self.subTest(file.stem):
                expected = json_format.Parse(file.read_text(), wire.EdgeFrame())
                self.assertEqual(wire.decode(hex_of(file)), expected)
                self.assertEqual(
                    json.loads(json_format.MessageToJson(wire.decode(hex_of(file)))), json.loads(file.read_text())
                )

    def test_writes_every_frame_of_a_node_byte_for_byte(self):
        for file in names("node"):
            with self.subTest(file.stem):
                frame = json_format.Parse(file.read_text(), wire.NodeFrame())
                self.assertEqual(wire.encode(frame)[4:], hex_of(file))

    def test_finds_the_frames_of_a_stream_however_it_is_cut(self):
        stream = hex_of(DATA / "framed/edge-all")
        expected = [wire.decode(hex_of(DATA / "edge" / name)) for name in json.loads((DATA / "framed/edge-all.json").read_text())]
        cuts = [[stream], [bytes([byte]) for byte in stream]]
        cuts += [[stream[:at], stream[at:]] for at in range(1, len(stream))]

        async def check():
            for chunks in cuts:
                self.assertEqual(await frames_of(chunks), expected)

        asyncio.run(check())

    def test_refuses_what_is_malformed_to_a_node(self):
        refused = []
        for file in names("malformed"):
            case = json.loads(file.read_text())
            if case["receiver"] == "node" and case["outcome"] == "link_ended":
                refused.append(file.stem)
                with self.subTest(file.stem), self.assertRaises(wire.BrokenRule):
                    asyncio.run(frames_of([frame_bytes(file, case)]))
        self.assertIn("wrong-direction-node", refused)


def frame_bytes(file, case):
    data = hex_of(file)
    return data if case["framed"] else len(data).to_bytes(4, "big") + data


class Refusals(unittest.TestCase):
    def refuse(self, data, rule, limit=wire.MAX_EDGE_FRAME):
        with self.assertRaisesRegex(wire.BrokenRule, rule):
            asyncio.run(frames_of([data], limit))

    def test_a_length_of_zero(self):
        self.refuse(bytes(4), "R-FRAME-2")

    def test_a_length_over_the_limit_without_waiting_for_the_body(self):
        self.refuse((101).to_bytes(4, "big"), "R-FRAME-3", limit=100)

    def test_a_frame_that_ends_too_early(self):
        self.refuse(bytes.fromhex("000000048a0102"), "R-FRAME-4")

    def test_a_body_that_only_a_node_sends(self):
        self.refuse(bytes.fromhex("000000024a00"), "R-FRAME-8")

    def test_invalid_utf8(self):
        # Goodbye { message: ED A0 80 }
        self.refuse(bytes.fromhex("00000008b201051203eda080"), "R-TEXT-1")

    def test_a_body_of_the_wrong_wire_type(self):
        self.refuse(bytes.fromhex("00000003880101"), "R-FRAME-5")

    def test_a_field_with_the_number_0(self):
        self.refuse(bytes.fromhex("000000020000"), "R-FRAME-5")

    def test_an_unknown_body_is_a_frame_without_body(self):
        # Number 31 with length 0: of a newer edge.
        self.assertIsNone(asyncio.run(frames_of([bytes.fromhex("00000003fa0100")]))[0].WhichOneof("body"))


class Text(unittest.TestCase):
    def test_lone_surrogates_become_replacement_characters(self):
        self.assertEqual(wire.clean("a\ud800b\udfff"), "a\ufffdb\ufffd")

    def test_everything_else_stays(self):
        text = "안녕 👩\u200d👩\u200d👧\u200d👦 e\u0301 \U0010ffff \x00"
        self.assertEqual(wire.clean(text), text)


if __name__ == "__main__":
    unittest.main()
