"""Agents in processes of their own: how one is started, and the two pipes between it and its lead.

The lead holds the other ends of the process's standard input and output. When the input closes, however the
lead ended, the teammate ends its turn and exits.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import BinaryIO
from uuid import uuid4

from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.permissions.rules import PermissionRule
from sevenfold.agent.tool import AccessRequest
from sevenfold.core.errors import AgentError, WireError
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.requests import Dialect, ModelRequest, ModelResponse
from sevenfold.core.settings.sections import PermissionMode

# The pipes: one line of JSON for each message. The teammate asks whether a tool may run and reports what it
# paid; the lead answers.

TEAMMATE_KIND = "teammate"
"""Its kind of spending."""
MAX_PIPE_LINE_BYTES = 8 * 1024 * 1024
"""Bytes of one thing said: a file that is to be written is shown to whoever is asked."""

_TOO_LONG = "what it would do is too long to be shown to the user; do it in smaller parts"
_NOBODY = "whoever could be asked is gone; do without it"


@dataclass(frozen=True, slots=True)
class PermissionQuery:
    """May I?"""

    id: str
    question: PermissionRequest


@dataclass(frozen=True, slots=True)
class UsageReport:
    """One call of a model."""

    who: str
    model: str
    wire: JsonObject
    """Its usage, as the provider said it."""
    dialect: Dialect = "anthropic"


def encode_pipe_message(said: PermissionQuery | UsageReport) -> bytes:
    if isinstance(said, UsageReport):
        fields: Mapping[str, object] = {
            "paid": said.wire,
            "who": said.who,
            "model": said.model,
            "dialect": said.dialect,
        }
    else:
        question, use, need, rule = said.question, said.question.use, said.question.need, said.question.rule
        fields = {
            "ask": said.id,
            "use": {"id": use.id, "name": use.name, "input": use.input},
            "said": need.said,
            "command": need.command,
            "reason": question.reason,
            "rule": None if rule is None else {"tool": rule.tool, "pattern": rule.pattern},
        }
    return write_json(freeze_object(fields)) + b"\n"


def decode_pipe_message(line: bytes) -> PermissionQuery | UsageReport:
    """What a teammate said; `WireError` where it is nothing of the kind."""
    wire = read_object(line)
    if "paid" in wire:
        dialect: Dialect = "openai" if wire.get("dialect") == "openai" else "anthropic"
        return UsageReport(_text(wire, "who"), _text(wire, "model"), _object(wire, "paid"), dialect)
    use, rule = _object(wire, "use"), wire.get("rule")
    question = PermissionRequest(
        use=ToolUse(ToolUseId(_text(use, "id")), _text(use, "name"), _object(use, "input")),
        # The teammate has checked its access already; here a person reads about it.
        need=AccessRequest(kind="nothing", command=_text(wire, "command"), said=_text(wire, "said")),
        reason=_text(wire, "reason"),
        rule=PermissionRule(_text(rule, "tool"), _text(rule, "pattern"))
        if isinstance(rule, JsonObject)
        else None,
    )
    return PermissionQuery(_text(wire, "ask"), question)


def encode_permission_response(asked: str, answer: PermissionResponse) -> bytes:
    fields = {"answer": asked, "allow": answer.is_allowed, "lasts": answer.lasts, "words": answer.words}
    return write_json(freeze_object(fields)) + b"\n"


@dataclass(slots=True)
class ParentPipe:
    """A teammate's end of it. Answers are awaited by whoever asked."""

    output: BinaryIO
    input: asyncio.StreamReader
    _open: dict[str, asyncio.Future[PermissionResponse]] = field(
        default_factory=dict[str, "asyncio.Future[PermissionResponse]"]
    )

    async def ask(self, question: PermissionRequest) -> PermissionResponse:
        """Have whoever the lead asks answer this."""
        asked = PermissionQuery(uuid4().hex, question)
        line = encode_pipe_message(asked)
        if len(line) > MAX_PIPE_LINE_BYTES:
            return PermissionResponse(False, words=_TOO_LONG)
        answered = self._open[asked.id] = asyncio.get_running_loop().create_future()
        try:
            self._say(line)
            return await answered
        finally:
            del self._open[asked.id]

    def report_usage(self, request: ModelRequest, reply: ModelResponse) -> None:
        """Tell the lead of a call that was answered."""
        model = reply.model or request.frame.model
        self._say(encode_pipe_message(UsageReport(request.purpose, model, reply.usage_wire, reply.dialect)))

    async def receive_responses(self) -> None:
        """Take in answers until the lead is gone."""
        while line := await self.input.readline():
            self._take(line)
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_result(PermissionResponse(False, words=_NOBODY))

    def _say(self, line: bytes) -> None:
        with suppress(OSError):  # the lead is gone, and so are we when its other pipe is found closed
            self.output.write(line)
            self.output.flush()

    def _take(self, line: bytes) -> None:
        wire = read_object(line)
        waiting, lasts = self._open.get(_text(wire, "answer")), wire.get("lasts")
        if waiting is not None and not waiting.done():
            is_long = lasts in ("session", "always")
            waiting.set_result(
                PermissionResponse(
                    wire.get("allow") is True,
                    ("always" if lasts == "always" else "session") if is_long else "once",
                    _text(wire, "words"),
                )
            )


async def open_parent_pipe(hearing: int, telling: int) -> ParentPipe:
    """On the ends of two pipes, which it owns from now on."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(MAX_PIPE_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(hearing, "rb", 0))
    return ParentPipe(os.fdopen(telling, "wb"), reader)


def _text(wire: JsonObject, key: str) -> str:
    value = wire.get(key)
    if not isinstance(value, str):
        raise WireError(f"{key} is {value!r}; expected text")
    return value


def _object(wire: JsonObject, key: str) -> JsonObject:
    value: Json = wire.get(key, EMPTY_OBJECT)
    if not isinstance(value, JsonObject):
        raise WireError(f"{key} is {value!r}; expected an object")
    return value


TEAMMATE_MODULE = "sevenfold.agent.opening.teammate"
MAX_STDERR_TAIL_CHARS = 2_000

TEAMMATE_EXIT_TIMEOUT = timedelta(seconds=20)
"""For a teammate to end by itself: a round of a model that is under way is broken off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeammateConfig:
    """What a teammate is started with, on one line of JSON."""

    name: str
    lead: str
    """The mailbox of whoever started it."""
    cwd: str
    session: str
    model: str
    mode: PermissionMode
    lead_mode: PermissionMode
    """What it may do once its lead has approved its plan: never more than the lead."""
    system: str
    prompt: str
    """Empty: it is taken up again, and waits for what is in its mailbox."""
    definition: str = ""
    description: str = ""
    tools: tuple[str, ...] | None = None
    memory: str = ""
    """The folder of its memory, which it may read beside the project; empty: none."""
    is_detached: bool = False
    """It lives on when its starter ends."""

    def write(self) -> bytes:
        return write_json(write_fields(self)) + b"\n"


def parse_teammate_config(line: bytes) -> TeammateConfig:
    """`WireError` where it is none."""
    return read_fields(TeammateConfig, read_object(line))


class TeammateProcess:
    """A teammate as its lead sees it."""

    def __init__(self, running: asyncio.subprocess.Process) -> None:
        self._running = running
        self._errors = asyncio.create_task(_read_end(running.stderr))

    async def receive(self) -> AsyncGenerator[bytes]:
        """What it says, a line at a time, until it has ended."""
        while self._running.stdout is not None and (line := await self._running.stdout.readline()):
            yield line

    def answer(self, asked: str, answer: PermissionResponse) -> None:
        if self._running.stdin is not None and not self._running.stdin.is_closing():
            self._running.stdin.write(encode_permission_response(asked, answer))

    async def wait(self) -> str:
        """Until it has ended; what was wrong, or nothing."""
        code = await self._running.wait()
        said = await self._errors
        return "" if code == 0 else f"its process ended with {code}: {said or 'it said nothing'}"

    async def end(self, wait: timedelta = TEAMMATE_EXIT_TIMEOUT) -> None:
        """Let go of it and wait until it is gone; one that does not go is killed."""
        if self._running.stdin is not None:
            self._running.stdin.close()
        try:
            async with asyncio.timeout(wait.total_seconds()):
                await self._running.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._running.kill()
        finally:
            # Also where we are cancelled meanwhile: nobody else will reap it.
            await asyncio.shield(self._running.wait())
        await self._errors


async def start_teammate(charge: TeammateConfig, environ: Mapping[str, str]) -> TeammateProcess:
    try:
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", TEAMMATE_MODULE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL if charge.is_detached else asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environ),
            cwd=charge.cwd,
            # Ctrl-C at the terminal is meant for its starter, who ends it properly.
            start_new_session=True,
            limit=MAX_PIPE_LINE_BYTES,
        )
    except OSError as error:
        raise AgentError(f"the teammate {charge.name!r} cannot be started: {error}") from error
    process = TeammateProcess(running)
    if running.stdin is not None:
        with suppress(OSError):  # it died at once: waiting for it says of what
            running.stdin.write(charge.write())
            await running.stdin.drain()
        if charge.is_detached:
            running.stdin.close()
    return process


async def _read_end(stream: asyncio.StreamReader | None) -> str:
    """The last of what it says, read all the while: a full pipe would stop it."""
    kept = ""
    while stream is not None and (part := await stream.read(4_096)):
        kept = (kept + part.decode("utf-8", "replace"))[-MAX_STDERR_TAIL_CHARS:]
    return kept.strip()
