"""The bytes of the link: code generated from proto/, frames, and the checks that a protobuf library leaves out."""

import fcntl
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
    from google.protobuf.unknown_fields import UnknownFieldSet
except ImportError:
    sys.exit(f"{sys.executable} has no protobuf library; {INSTALL} (and start it with /usr/bin/python3)")


def generate():
    """Lets protoc write gen/, unless it is there and newer than the .proto files."""
    protos = sorted(PROTO.glob("iop/v1/*.proto"))
    if GENERATED.is_dir() and GENERATED.stat().st_mtime >= max(file.stat().st_mtime for file in protos):
        return
    if shutil.which("protoc") is None:
        sys.exit(f"there is no protoc; {INSTALL}")
    # Made aside and moved into place whole, so that an end in the middle leaves nothing behind.
    with tempfile.TemporaryDirectory(dir=HERE, prefix="gen.") as made:
        # Debian keeps google/protobuf/struct.proto in yet another package; the library knows it as well.
        known = descriptor_pb2.FileDescriptorSet()
        struct_pb2.DESCRIPTOR.CopyToProto(known.file.add())
        (Path(made) / "known.bin").write_bytes(known.SerializeToString())
        (Path(made) / "gen").mkdir()
        command = ["protoc", f"--descriptor_set_in={made}/known.bin", f"-I{PROTO}", f"--python_out={made}/gen"]
        subprocess.run([*command, *protos], check=True)
        shutil.rmtree(GENERATED, ignore_errors=True)
        (Path(made) / "gen").rename(GENERATED)


with open(__file__) as lock:  # several nodes may start at once
    fcntl.flock(lock, fcntl.LOCK_EX)
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
    frame = EdgeFrame()
    try:
        whole = frame.MergeFromString(body) == len(body)
    except (DecodeError, UnicodeDecodeError) as error:
        raise BrokenRule(f"R-FRAME-5, R-FRAME-6 or R-TEXT-1: {error}") from error
    if not whole:
        raise BrokenRule("R-FRAME-5: bytes that are no fields")
    # To the library these are just unknown fields, as those of a newer edge.
    for field in UnknownFieldSet(frame):
        if field.field_number <= 15:
            raise BrokenRule(f"R-FRAME-8: body {field.field_number}, which only a node sends")
        if field.field_number in EdgeFrame.DESCRIPTOR.fields_by_number:
            raise BrokenRule(f"R-FRAME-5: body {field.field_number} with wire type {field.wire_type}")
    return frame
