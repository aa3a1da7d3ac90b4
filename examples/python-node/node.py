#!/usr/bin/python3
"""A node in Python: it dials the edge, takes its configuration and its runs from it, and comes back whenever it can.

usage: IOP_NODE_TOKEN=... node.py --edge HOST:PORT [--tls] [--ca FILE] [--cert FILE --key FILE]
"""

import argparse
import asyncio
import os
import random
import secrets
import signal
import ssl
import sys
from dataclasses import dataclass

import wire
from adapters import KINDS, Configured
from link import Link, now
from run import Run
from wire import frame_pb2, register_pb2, run_event_pb2, status_pb2

VERSION = register_pb2.ProtocolVersion(major=1, minor=0)
REGISTER_FRAME, HELD_RUNS = 65_536, 4_096  # limits of the RegisterRequest
DIAL, ANSWER = 10, 10  # seconds
STABLE = 10  # seconds of a link after which the backoff begins again
HOLD = 120  # seconds that runs are held without a link
DRAIN = 30_000  # milliseconds, where the configuration says 0
LAST_ACKS = 5  # seconds that the edge has to acknowledge the last events before our Goodbye


@dataclass
class Ended:
    """How one attempt to have a link ended."""

    kind: str  # of the same kind are logged once a minute
    message: str
    stable: bool = False
    permanent: bool = False
    retry_after: float = 0


class Node:
    def __init__(self, host, port, token, tls):
        self.host, self.port, self.token, self.tls = host, port, token, tls
        self.boot_id = secrets.token_bytes(16)  # a secret of this process
        self.runs = {}  # (run_id, attempt) -> Run
        self.adapters = {}  # name -> Configured
        self.config = None
        self.limits = None
        self.link = None  # only while registered
        self.stopping = False
        self.hold_timer = None
        self.finishing = None
        self.logged_at = {}

    # Dialling, for ever

    async def serve(self):
        failures = 0
        while True:
            ended = await self.session()
            if self.stopping:
                return
            failures = 0 if ended.stable else failures + 1
            floor, spread = (30, 30) if ended.permanent else (0, min(30, 2 ** max(0, min(failures, 9) - 1)))
            wait = max(floor, ended.retry_after) + random.random() * spread
            if now() - self.logged_at.get(ended.kind, -60) >= 60:
                self.logged_at[ended.kind] = now()
                log(f"{ended.message}; dialling again in {wait:.1f} s")
            await asyncio.sleep(wait)

    async def session(self):
        address, joined_at = f"{self.host}:{self.port}", None
        try:
            dialling = asyncio.open_connection(self.host, self.port, ssl=self.tls)
            link = Link(*await asyncio.wait_for(dialling, DIAL))
        except (OSError, asyncio.TimeoutError) as error:
            return Ended("dial", f"cannot reach the edge at {address}: {error or 'no answer'}")
        try:
            link.send(self.register_request())
            frame = await asyncio.wait_for(link.read(), ANSWER)
            if frame is None:
                return Ended("closed", f"the edge at {address} closed the connection instead of registering this node")
            response = frame.register_response
            if response.WhichOneof("result") is None:
                raise wire.BrokenRule("R-REG-12: the first frame of the edge is no RegisterResponse")
            if response.HasField("rejected"):
                no = response.rejected
                text = f"the edge at {address} rejected this node: {no.message}"
                return Ended(f"rejected {no.code}", text, permanent=not no.retryable, retry_after=no.retry_after_ms / 1000)
            self.join(link, response.accepted)
            joined_at = now()
            ended = Ended("lost", "the link to the edge was lost")
            while (frame := await link.read()) is not None:
                if goodbye := self.take(frame):
                    text = f"the edge ended the link: {goodbye.message} (code {goodbye.code})"
                    ended = Ended(f"goodbye {goodbye.code}", text)
                    break
        except wire.BrokenRule as error:
            ended = Ended("broken rule", f"the edge broke the protocol: {error}")
        except asyncio.TimeoutError:
            return Ended("no answer", f"the edge at {address} did not answer within {ANSWER} s")
        except OSError as error:
            ended = Ended("lost", f"the link to the edge broke: {error}")
        finally:
            self.leave(link)
        if link.ended_because:
            ended = Ended("lost", f"the link to the edge was given up: {link.ended_because}")
        ended.stable = joined_at is not None and now() - joined_at >= STABLE
        return ended

    # Registration

    def register_request(self):
        request = register_pb2.RegisterRequest(
            protocol_version=VERSION,
            token=self.token,
            boot_id=self.boot_id,
            agent_name="python-node",
            agent_version="1.0.0",
            adapter_kinds=list(KINDS),
        )
        for run in list(self.runs.values()):
            request.held_runs.add(
                run_id=run.key[0], attempt=run.key[1], first_unacked_seq=run.acked + 1, last_seq=run.last
            )
            # What is not listed ends at the edge.
            if len(request.held_runs) > HELD_RUNS or request.ByteSize() > REGISTER_FRAME - 16:
                del request.held_runs[-1]
                self.drop(run)
        return wire.NodeFrame(register_request=request)

    def join(self, link, accepted):
        if self.hold_timer:
            self.hold_timer.cancel()
        self.link, self.limits = link, accepted.limits
        link.max_edge_frame = accepted.limits.max_edge_frame_bytes or wire.MAX_EDGE_FRAME
        link.watch((accepted.heartbeat_interval_ms or 5_000) / 1000, accepted.heartbeat_dead_after or 3)
        log(f"registered as {accepted.node_id} ({accepted.alias}) at {accepted.edge_id}, link {accepted.link_epoch}")

        decisions = {(held.run_id, held.attempt): held for held in accepted.held_runs}
        for run in list(self.runs.values()):
            decision = decisions.get(run.key)
            resume = decision.resume if decision and decision.HasField("resume") else None
            if resume and run.acked <= resume.after_seq <= run.last:
                log(f"resuming run {run.key[0]} after event {resume.after_seq}")
                run.resume(link, resume.handle, resume.after_seq)
            else:
                log(f"the edge does not want run {run.key[0]} any more")
                self.drop(run)

        self.config = accepted.config
        before = self.adapters  # an adapter with equal settings goes on undisturbed
        self.adapters = {
            config.name: before[config.name]
            if config.name in before and before[config.name].config == config
            else Configured(config)
            for config in accepted.config.adapters
        }
        self.report()

    def report(self):
        """R-CONF-1: what is in force."""
        adapters = [adapter.status() for adapter in self.adapters.values()]
        for status in adapters:
            status.slots_in_use = sum(run.request.adapter == status.name and not run.ended for run in self.runs.values())
        status = status_pb2.NodeStatus(config_revision=self.config.revision, adapters=adapters, draining=self.stopping)
        self.link.send(wire.NodeFrame(node_status=status))

    def leave(self, link):
        link.close()
        if self.link is not link:
            return
        self.link = None
        if self.finishing:
            self.finishing.cancel()
            self.finishing = None
        for run in self.runs.values():
            run.detach()  # they go on, up to the window
        if self.runs:
            self.hold_timer = asyncio.get_running_loop().call_later(HOLD, self.drop_all)

    # Frames of a registered link

    def take(self, frame):
        """Handles one frame; a Goodbye is returned."""
        body = frame.WhichOneof("body")
        if body == "ping":
            self.link.send_first(wire.NodeFrame(pong=frame_pb2.Pong(nonce=frame.ping.nonce)))
        elif body == "run_request":
            self.start(frame.run_request)
        elif body == "run_ack":
            if run := self.by_handle(frame.run_ack.handle):
                run.acknowledge(frame.run_ack.seq)
        elif body == "run_cancel":
            if run := self.by_handle(frame.run_cancel.handle):
                run.stop(cancelled=run_event_pb2.Cancelled(reason=frame.run_cancel.reason))
        elif body == "drain":
            log(f"the edge drains this node: {frame.drain.reason}")
            self.finish(frame.drain.timeout_ms, "drained, as the edge asked")
        elif body == "goodbye":
            return frame.goodbye
        elif body == "register_response":
            raise wire.BrokenRule("R-REG-12: a second RegisterResponse")
        return None  # None is a body of a newer edge

    def start(self, request):
        if request.handle == 0 or self.by_handle(request.handle) or (request.run_id, request.attempt) in self.runs:
            raise wire.BrokenRule(f"R-RUN-10: run {request.run_id} or its handle {request.handle} is in use")
        run = Run(request, self.link, self.limits, on_over=lambda run: self.runs.pop(run.key, None))
        self.runs[run.key] = run
        adapter = self.adapters.get(request.adapter)
        if self.stopping or self.finishing:
            run.fail(run_event_pb2.FAILURE_CODE_REJECTED, "this node is stopping", retryable=True)
        elif adapter is None or not adapter.takes(request.target):
            text = f"this node has no target {request.target} of an adapter {request.adapter}"
            run.fail(run_event_pb2.FAILURE_CODE_REJECTED, text, retryable=True)
        else:
            run.start(adapter.adapter)

    def by_handle(self, handle):
        return next((run for run in self.runs.values() if run.handle == handle), None)

    def drop(self, run):
        run.stop()
        self.runs.pop(run.key, None)

    def drop_all(self):
        log("no link for two minutes: the runs that this node held are stopped")
        for run in list(self.runs.values()):
            self.drop(run)

    # Drain and stop

    def finish(self, timeout_ms, why):
        """Ends the runs and says Goodbye, while the link is read on. The session ends when the edge closes."""
        if not self.finishing:
            self.finishing = asyncio.ensure_future(self.finish_runs(self.link, timeout_ms / 1000, why))

    async def finish_runs(self, link, timeout, why):
        await self.until(lambda: all(run.ended for run in self.runs.values()), timeout)
        for run in self.runs.values():
            run.fail_and_stop("the node stopped before the run ended")
        await self.until(lambda: not self.runs, LAST_ACKS)
        link.finish(wire.NodeFrame(goodbye=frame_pb2.Goodbye(code=frame_pb2.GOODBYE_CODE_SHUTDOWN, message=why)))
        for run in list(self.runs.values()):
            self.drop(run)  # the Goodbye says that they are over

    @staticmethod
    async def until(holds, timeout):
        end = now() + timeout
        while not holds() and now() < end:
            await asyncio.sleep(0.02)

    def stop(self, serving):
        """SIGTERM and SIGINT: the first one finishes, a second one does not wait."""
        if self.stopping or self.link is None:
            self.stopping = True
            serving.cancel()
            return
        self.stopping = True
        log("stopping: no new runs")
        self.report()
        self.finish(self.config.runtime.drain_timeout_ms or DRAIN, "asked to stop")


def log(text):
    """One line for a person; what came from elsewhere is shown escaped."""
    print("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text), file=sys.stderr, flush=True)


async def main():
    parser = argparse.ArgumentParser(description="A node for the IOP edge. Its token comes from IOP_NODE_TOKEN.")
    parser.add_argument("--edge", required=True, metavar="HOST:PORT", help="where the edge takes nodes")
    parser.add_argument("--tls", action="store_true", help="dial with TLS")
    parser.add_argument("--ca", metavar="FILE", help="the CA of the edge's certificate, if the system does not know it")
    parser.add_argument("--cert", metavar="FILE", help="a client certificate, if the edge asks for one")
    parser.add_argument("--key", metavar="FILE", help="its key")
    options = parser.parse_args()
    host, _, port = options.edge.rpartition(":")
    token = os.environ.get("IOP_NODE_TOKEN", "")
    if not host or not port.isdigit():
        parser.error(f"{options.edge!r} is no HOST:PORT, such as 192.168.1.10:7610")
    if not token:
        parser.error("IOP_NODE_TOKEN is not set; it is this node's token in the edge's configuration")
    tls = None
    if options.tls or options.ca or options.cert:
        tls = ssl.create_default_context(cafile=options.ca)
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        if options.cert:
            tls.load_cert_chain(options.cert, options.key)
    node = Node(host.strip("[]"), int(port), token, tls)
    serving = asyncio.ensure_future(node.serve())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, node.stop, serving)
    try:
        await serving
    except asyncio.CancelledError:
        pass
    log("stopped")


if __name__ == "__main__":
    asyncio.run(main())
