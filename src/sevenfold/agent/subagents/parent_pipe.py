"""The two pipes between a teammate's process and its lead's: a line of JSON for each thing said.

The teammate asks whether a tool may run and tells what it paid; the lead answers. When the lead's end closes,
however the lead died, the teammate goes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO
from uuid import uuid4

from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.permissions.rules import PermissionRule
from sevenfold.agent.tool import AccessRequest
from sevenfold.core.errors import WireError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.requests import Dialect, ModelRequest, ModelResponse

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
        ToolUse(ToolUseId(_text(use, "id")), _text(use, "name"), _object(use, "input")),
        # What it needs was judged where it runs; here a person reads of it.
        AccessRequest(kind="nothing", command=_text(wire, "command"), said=_text(wire, "said")),
        _text(wire, "reason"),
        PermissionRule(_text(rule, "tool"), _text(rule, "pattern")) if isinstance(rule, JsonObject) else None,
    )
    return PermissionQuery(_text(wire, "ask"), question)


def encode_permission_response(asked: str, answer: PermissionResponse) -> bytes:
    fields = {"answer": asked, "allow": answer.is_allowed, "lasts": answer.lasts, "words": answer.words}
    return write_json(freeze_object(fields)) + b"\n"


@dataclass(slots=True)
class ParentPipe:
    """A teammate's end of it. Answers are awaited by whoever asked."""

    telling: BinaryIO
    hearing: asyncio.StreamReader
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

    def pay(self, request: ModelRequest, reply: ModelResponse) -> None:
        """Tell the lead of a call that was answered."""
        model = reply.model or request.frame.model
        self._say(encode_pipe_message(UsageReport(request.who, model, reply.usage_wire, reply.dialect)))

    async def hear(self) -> None:
        """Take in answers until the lead is gone."""
        while line := await self.hearing.readline():
            self._take(line)
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_result(PermissionResponse(False, words=_NOBODY))

    def _say(self, line: bytes) -> None:
        with suppress(OSError):  # the lead is gone, and so are we when its other pipe is found closed
            self.telling.write(line)
            self.telling.flush()

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
