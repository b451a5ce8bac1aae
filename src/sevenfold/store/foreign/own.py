"""Sevenfold's own transcripts, read as entries like those of other agents.

A usage line stands before the answer that it bills. Calls of forks have a usage line and no messages here:
each kind of fork is a conversation of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from sevenfold.core.errors import WireError
from sevenfold.core.usage import read_stored_usage
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    NO_LINE_KEY,
    CacheDialect,
    CallId,
    ConversationId,
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    ForeignSource,
    JsonFields,
    LineKey,
    UnknownLine,
    as_blocks,
    get_int,
    get_name,
    get_object,
    get_time,
)

RECORD_KINDS = frozenset({"aside", "boundary", "cut", "decision", "message", "parent", "request", "usage"})
_SOURCES: dict[str, ForeignSource] = {"attachment": "attachment", "memory": "memory", "summary": "summary"}
_MAIN = "main"


class OwnReader:
    """Lines in, entries out. It remembers the usage line that belongs to the next answer."""

    __slots__ = ("_bill",)

    def __init__(self) -> None:
        self._bill: ForeignOutput | None = None
        """The call that the next answer belongs to."""

    def read(self, line: JsonFields) -> Iterator[ForeignEntry]:
        """What one line says."""
        kind, value = get_name(line, "k"), get_object(line, "v")
        key, at = LineKey(get_name(line, "id")), get_time(line, "at")
        match kind:
            case "message":
                yield self._read_message(value, key, at)
            case "aside":
                message = get_object(value, "message")
                yield _read_input(message, key, at, _SOURCES.get(get_name(value, "origin"), "attachment"))
            case "usage":
                yield from self._read_usage(value, key, at)
            case "boundary":
                yield ForeignCompaction(
                    conversation=MAIN_CONVERSATION,
                    at=at,
                    before_tokens=get_int(value, "tokens_before"),
                    kept_from=LineKey(get_name(get_object(value, "kept"), "head")) or NO_LINE_KEY,
                )
            case _ if kind not in RECORD_KINDS:
                yield UnknownLine(kind or "(no kind)")
            case _:
                pass

    def _read_message(self, message: JsonFields, key: LineKey, at: datetime | None) -> ForeignEntry:
        if get_name(message, "role") != "assistant":
            is_user = get_name(message, "role") == "user"
            return _read_input(message, key, at, "human" if is_user else "attachment")
        bill, self._bill = self._bill, None
        said = as_blocks(message.get("content"))
        return replace(bill or _make_call(MAIN_CONVERSATION, at), key=key, at=at, blocks=said)

    def _read_usage(self, value: JsonFields, key: LineKey, at: datetime | None) -> Iterator[ForeignEntry]:
        dialect: CacheDialect = "openai" if get_name(value, "dialect") == "openai" else "anthropic"
        try:
            usage = read_stored_usage(get_object(value, "wire"), dialect)
        except WireError:
            return
        who = get_name(value, "who")
        call = replace(
            _make_call(MAIN_CONVERSATION if who == _MAIN else ConversationId(who), at),
            key=key,
            call=CallId(key),
            model=get_name(value, "model"),
            usage=usage,
            dialect=dialect,
            is_simulated=value.get("is_simulated") is True,
        )
        if who != _MAIN:
            yield call
            return
        if self._bill is not None:
            yield self._bill  # it was paid for, and its answer was never written
        self._bill = call


def _make_call(conversation: ConversationId, at: datetime | None) -> ForeignOutput:
    return ForeignOutput(
        conversation=conversation,
        key=NO_LINE_KEY,
        at=at,
        call=CallId(""),
        model="",
        blocks=(),
        is_complete=True,
    )


def _read_input(
    message: JsonFields, key: LineKey, at: datetime | None, source: ForeignSource
) -> ForeignInput:
    return ForeignInput(
        conversation=MAIN_CONVERSATION,
        key=key,
        at=at,
        role="user" if get_name(message, "role") == "user" else "system",
        blocks=as_blocks(message.get("content")),
        source=source,
    )
