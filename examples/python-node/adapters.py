"""What this node can run: a `mock` that echoes and counts, and a `wordcount` of its own kind (`custom` to the edge)."""

import asyncio
import re

from wire import run_input_pb2, status_pb2

TEXT_ROLES = {run_input_pb2.ROLE_SYSTEM, run_input_pb2.ROLE_DEVELOPER, run_input_pb2.ROLE_USER, run_input_pb2.ROLE_ASSISTANT}


class InvalidInput(Exception):
    """The target cannot work on this input, here or elsewhere."""


class BackendError(Exception):
    def __init__(self, message, may_pass):
        super().__init__(message)
        self.may_pass = may_pass


def text_of(run_input):
    """The prompt, or the last user's message. What these targets cannot honour is refused, never dropped."""
    kind = run_input.WhichOneof("kind")
    body = getattr(run_input, kind) if kind in ("chat", "prompt") else None
    if body is None:
        raise InvalidInput(f"this target takes a prompt or a chat, not {kind or 'an input of an unknown kind'}")
    if body.sampling.n > 1:
        raise InvalidInput("this target gives one answer; n must be 1")
    if kind == "prompt":
        if body.suffix:
            raise InvalidInput("this target takes no suffix")
        return body.text
    if body.tools or body.response_format.WhichOneof("kind") not in (None, "text"):
        raise InvalidInput("this target calls no tools and knows no response format but text")
    said = ""
    for message in body.messages:
        if message.role not in TEXT_ROLES or message.tool_calls:
            raise InvalidInput("this target knows no tool messages and no roles of a newer version")
        if any(part.WhichOneof("content") != "text" for part in message.parts):
            raise InvalidInput("this target takes text only")
        if message.role == run_input_pb2.ROLE_USER:
            said = "".join(part.text for part in message.parts)
    return said


class Mock:
    targets = ("count", "echo")

    def __init__(self, config):
        self.scripts = config.mock.scripts

    async def run(self, target, run_input):
        text = text_of(run_input)
        if target == "echo":
            if run_input.prompt.echo:
                yield text
            for word in re.finditer(r"\s*\S+|\s+$", text):
                yield word.group()
            return
        number = re.search(r"[0-9]+", text)
        if number is None:
            raise InvalidInput("say up to which number to count")
        # scripts: { count: { delay_ms: 20 } }
        script = self.scripts["count"] if "count" in self.scripts else {}
        delay = script["delay_ms"] / 1000 if "delay_ms" in script else 0
        for i in range(1, int(number.group()) + 1):
            yield f"{i} "
            if delay:
                await asyncio.sleep(delay)


class WordCount:
    targets = ("letters", "words")

    def __init__(self, config):
        settings = config.custom.settings
        self.separator = settings["separator"] if "separator" in settings else None

    async def run(self, target, run_input):
        text = text_of(run_input)
        yield str(len(text.split(self.separator)) if target == "words" else len(text))


KINDS = {"mock": Mock, "wordcount": WordCount}


class Configured:
    """One adapter of the configuration, and what the edge is told about it."""

    def __init__(self, config):
        self.config = config
        kind = config.WhichOneof("settings")
        kind = config.custom.kind if kind == "custom" else kind
        self.adapter, self.reason = None, ""
        if kind not in KINDS:
            self.reason = f"this node cannot run {kind}" if kind else "the configuration has no settings that this node knows"
            return
        try:
            self.adapter = KINDS[kind](config)
        except Exception as error:
            self.reason = f"its settings do not work: {error}"

    @property
    def targets(self):
        return tuple(self.config.targets) or (self.adapter.targets if self.adapter else ())

    def takes(self, target):
        """Whether a run of the target can be started."""
        return self.adapter is not None and target in self.targets and target in self.adapter.targets

    def status(self):
        ready = self.adapter is not None
        return status_pb2.AdapterStatus(
            name=self.config.name,
            state=status_pb2.ADAPTER_STATE_READY if ready else status_pb2.ADAPTER_STATE_UNAVAILABLE,
            reason=self.reason,
            targets=[status_pb2.Target(name=name, capabilities=["chat", "completion"]) for name in self.targets],
            slots=self.config.slots,
        )
