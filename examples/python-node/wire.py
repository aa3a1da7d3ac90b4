"""The bytes of the link: code generated from proto/, frames, and the checks that a protobuf library leaves out."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
GENERATED = HERE / "gen"
INSTALL = "install what this node needs with: sudo apt install python3-protobuf protobuf-compiler"

try:
    from google.protobuf import descriptor_pb2, struct_pb2
    from google.protobuf.message import DecodeError
except ImportError:
    sys.exit(f"{sys.executable} has no protobuf library; {INSTALL} (and start it with /usr/bin/python3)")


def generate():
    """Lets protoc write gen/, unless it is there and newer than the .proto files."""
    protos = sorted(PROTO.glob("iop/v1/*.proto"))
    newest = max(file.stat().st_mtime for file in protos)
    if GENERATED.is_dir() and GENERATED.stat().st_mtime >= newest:
        return
    if shutil.which("protoc") is None:
        sys.exit(f"there is no protoc; {INSTALL}")
    # Made aside and moved into place whole, because several nodes may start at once.
    with tempfile.TemporaryDirectory(dir=HERE, prefix="gen.") as folder:
        # Debian keeps google/protobuf/struct.proto in yet another package; the library knows it as well.
        known = descriptor_pb2.FileDescriptorSet()
        struct_pb2.DESCRIPTOR.CopyToProto(known.file.add())
        (Path(folder) / "known.bin").write_bytes(known.SerializeToString())
        code = Path(folder) / "code"
        code.mkdir()
        subprocess.run(
            ["protoc", f"--descriptor_set_in={folder}/known.bin", f"-I{PROTO}", f"--python_out={code}", *protos],
            check=True,
        )
        shutil.rmtree(GENERATED, ignore_errors=True)
        try:
            code.rename(GENERATED)
        except OSError:
            if not GENERATED.is_dir():  # otherwise another process was faster
                raise


generate()
sys.path.insert(0, str(GENERATED))
from iop.v1 import frame_pb2, node_config_pb2, register_pb2, run_event_pb2, run_input_pb2, run_pb2, status_pb2  # noqa: E402, F401

NodeFrame, EdgeFrame = frame_pb2.NodeFrame, frame_pb2.EdgeFrame

MAX_EDGE_FRAME = 33_554_432  # until the edge says otherwise
MAX_NODE_FRAME = 1_048_576
RUN_WINDOW = 262_144


class BrokenRule(Exception):
    """The edge sent what the protocol does not allow; the message names the rule."""


def encode(frame):
    """The bytes of one frame, its length first."""
    body = frame.SerializeToString(deterministic=True)
    return len(body).to_bytes(4, "big") + body


def clean(text):
    """R-TEXT-2: a lone surrogate, which a Python string may hold, becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def check_length(head, limit):
    """N from the first four bytes."""
    n = int.from_bytes(head, "big")
    if n == 0:
        raise BrokenRule("R-FRAME-2: a frame of no bytes")
    if n > limit:
        raise BrokenRule(f"R-FRAME-3: a frame of {n} bytes, the limit is {limit}")
    return n


def decode(body):
    """The EdgeFrame in the bytes. Its body is None if a newer edge sent one that this node does not know."""
    check_envelope(body)
    try:
        return EdgeFrame.FromString(body)
    except (DecodeError, UnicodeDecodeError) as error:
        raise BrokenRule(f"R-FRAME-5, R-FRAME-6 or R-TEXT-1: {error}") from error


def check_envelope(body):
    """R-FRAME-8 and the wire types of the bodies: to a protobuf library these would be just unknown fields."""
    at = 0
    while at < len(body):
        tag, at = varint(body, at)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            raise BrokenRule("R-FRAME-5: a field with the number 0")
        if number <= 15:
            raise BrokenRule(f"R-FRAME-8: body {number}, which only a node sends")
        if 16 <= number <= 22 and wire_type != 2:
            raise BrokenRule(f"R-FRAME-5: body {number} with wire type {wire_type}")
        if wire_type == 0:
            at = varint(body, at)[1]
        elif wire_type == 2:
            size, at = varint(body, at)
            at += size
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:
            return  # a group, of no known body: the library walks it


def varint(body, at):
    value = shift = 0
    while True:
        if at >= len(body) or shift > 63:
            raise BrokenRule("R-FRAME-5: a number that does not end")
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
