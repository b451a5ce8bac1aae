"""Plain Messages JSONL: one message a line, with or without what it cost.

A line is a message (`role`, `content`), an answer as the API returned it (with `id`, `model`, `usage`), or
either with a `meta` object that holds model, usage, time and what happened to the context. Usage may count
either provider's way.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sevenfold.core.errors import WireError
from sevenfold.core.messages import Block, Text, ToolUseId
from sevenfold.core.usage import Usage, read_stored_usage
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    CacheDialect,
    CallId,
    ForeignClearing,
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    ForeignSession,
    ForeignSource,
    JsonFields,
    LineKey,
    UnknownLine,
    as_blocks,
    get_int,
    get_list,
    get_name,
    get_object,
    get_text,
    get_time,
)

PLAIN_ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})
OPENAI_KEYS = ("prompt_tokens", "cached_input_tokens", "input_tokens_details")


class PlainReader:
    """Lines in, entries out. Where usage counts OpenAI's way, an answer without it belongs to the next."""

    __slots__ = ("_count", "_dialect")

    def __init__(self) -> None:
        self._dialect: CacheDialect = "anthropic"
        self._count = 0

    def read(self, line: JsonFields) -> Iterator[ForeignEntry]:
        """What one line says."""
        message = line if "role" in line else get_object(line, "message")
        role = get_name(message, "role")
        if role not in PLAIN_ROLES:
            yield UnknownLine(get_name(line, "type") or "(no role)")
            return
        meta = get_object(line, "meta")
        yield from _introduced(line, meta)
        said = as_blocks(message.get("content"))
        before, after = said[: _place(meta)], said[_place(meta) :]
        key, at = LineKey(get_name(meta, "uuid", "id")), _moment(line, meta)
        if before:
            yield ForeignInput(lane=MAIN_CONVERSATION, key=key, at=at, role="user", blocks=before)
        yield from _boundary(get_object(meta, "boundary"), meta)
        if role == "assistant":
            yield self._answered(line, message, after)
        elif after:
            yield ForeignInput(
                lane=MAIN_CONVERSATION,
                key=key,
                at=at,
                role="user" if role == "user" else "system",
                blocks=after,
                source=_source(role, after, meta),
            )

    def _answered(self, line: JsonFields, message: JsonFields, said: tuple[Block, ...]) -> ForeignOutput:
        meta = get_object(line, "meta")
        wire = get_object(message, "usage") or get_object(line, "usage") or get_object(meta, "usage")
        if wire and any(key in wire for key in OPENAI_KEYS):
            self._dialect = "openai"
        call = get_name(message, "id") if "usage" in message else ""
        if self._dialect == "openai" and not call:
            call = f"call {self._count}"
        usage = _read_usage(wire, self._dialect)
        self._count += usage is not None
        return ForeignOutput(
            lane=MAIN_CONVERSATION,
            key=LineKey(get_name(meta, "uuid", "id")),
            at=_moment(line, meta),
            call=CallId(call),
            model=get_name(message, "model") or get_name(line, "model") or get_name(meta, "model"),
            blocks=said,
            usage=usage,
            is_complete=bool(get_text(message, "stop_reason")) or self._dialect == "openai",
            dialect=self._dialect,
        )


def _introduced(line: JsonFields, meta: JsonFields) -> Iterator[ForeignEntry]:
    told = get_text(meta, "system")
    if told:
        yield ForeignInput(
            lane=MAIN_CONVERSATION,
            key=LineKey(""),
            at=_moment(line, meta),
            role="system",
            blocks=(Text(told),),
            source="system_prompt",
        )
    session = get_name(meta, "session", "session_id") or get_name(line, "session_id")
    if session:
        yield ForeignSession(session, get_name(meta, "cwd"))


def _place(meta: JsonFields) -> int:
    """How many blocks of a merged message were said before the boundary that fell within it."""
    return (get_int(meta, "merged_at") or 0) if "boundary" in meta else 0


def _boundary(boundary: JsonFields, meta: JsonFields) -> Iterator[ForeignEntry]:
    if not boundary:
        return
    at = get_time(meta, "ts")
    if "micro" in get_name(boundary, "kind"):
        ids = (item for item in get_list(boundary, "cleared_tool_ids") if isinstance(item, str))
        yield ForeignClearing(
            MAIN_CONVERSATION, at, frozenset(map(ToolUseId, ids)), get_int(boundary, "tokens_saved")
        )
    else:
        yield ForeignCompaction(lane=MAIN_CONVERSATION, at=at, before_tokens=get_int(boundary, "pre_tokens"))


def _source(role: str, said: tuple[Block, ...], meta: JsonFields) -> ForeignSource:
    if meta.get("compact_summary") is True:
        return "summary"
    first = said[0]
    is_program = isinstance(first, Text) and first.text.startswith("<")
    return "attachment" if role != "user" or meta.get("is_meta") is True or is_program else "human"


def _moment(line: JsonFields, meta: JsonFields) -> datetime | None:
    return get_time(meta, "ts", "timestamp") or get_time(line, "timestamp", "ts", "created_at", "time")


def _read_usage(wire: JsonFields, dialect: CacheDialect) -> Usage | None:
    """None where no call was made: some programs log an answer of their own, with a bill of nothing."""
    try:
        usage = read_stored_usage(wire, dialect) if wire else None
    except WireError:
        return None
    return usage if usage and (usage.prompt or usage.iterations) else None
