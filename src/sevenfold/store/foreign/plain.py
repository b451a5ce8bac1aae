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
from sevenfold.core.usage import Usage, read_billed
from sevenfold.store.foreign.entries import (
    MAIN,
    Answered,
    CallId,
    Cleared,
    Compacted,
    Dialect,
    Entry,
    ForeignSession,
    LineKey,
    Said,
    Source,
    Unknown,
)
from sevenfold.store.foreign.fields import Fields, blocks, inner, listed, moment, name, text, whole

ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})
OPENAI_KEYS = ("prompt_tokens", "cached_input_tokens", "input_tokens_details")


class PlainReader:
    """Lines in, entries out. Where usage counts OpenAI's way, an answer without it belongs to the next."""

    __slots__ = ("_count", "_dialect")

    def __init__(self) -> None:
        self._dialect: Dialect = "anthropic"
        self._count = 0

    def read(self, line: Fields) -> Iterator[Entry]:
        """What one line says."""
        message = line if "role" in line else inner(line, "message")
        role = name(message, "role")
        if role not in ROLES:
            yield Unknown(name(line, "type") or "(no role)")
            return
        meta = inner(line, "meta")
        yield from _introduced(line, meta)
        said = blocks(message.get("content"))
        before, after = said[: _place(meta)], said[_place(meta) :]
        key, at = LineKey(name(meta, "uuid", "id")), _moment(line, meta)
        if before:
            yield Said(MAIN, key, at, "user", before)
        yield from _boundary(inner(meta, "boundary"), meta)
        if role == "assistant":
            yield self._answered(line, message, after)
        elif after:
            yield Said(
                MAIN, key, at, "user" if role == "user" else "system", after, _source(role, after, meta)
            )

    def _answered(self, line: Fields, message: Fields, said: tuple[Block, ...]) -> Answered:
        meta = inner(line, "meta")
        wire = inner(message, "usage") or inner(line, "usage") or inner(meta, "usage")
        if wire and any(key in wire for key in OPENAI_KEYS):
            self._dialect = "openai"
        call = name(message, "id") if "usage" in message else ""
        if self._dialect == "openai" and not call:
            call = f"call {self._count}"
        usage = _read_usage(wire, self._dialect)
        self._count += usage is not None
        return Answered(
            MAIN,
            LineKey(name(meta, "uuid", "id")),
            _moment(line, meta),
            CallId(call),
            name(message, "model") or name(line, "model") or name(meta, "model"),
            said,
            usage,
            is_complete=bool(text(message, "stop_reason")) or self._dialect == "openai",
            dialect=self._dialect,
        )


def _introduced(line: Fields, meta: Fields) -> Iterator[Entry]:
    told = text(meta, "system")
    if told:
        yield Said(MAIN, LineKey(""), _moment(line, meta), "system", (Text(told),), "system_prompt")
    session = name(meta, "session", "session_id") or name(line, "session_id")
    if session:
        yield ForeignSession(session, name(meta, "cwd"))


def _place(meta: Fields) -> int:
    """How many blocks of a merged message were said before the boundary that fell within it."""
    return (whole(meta, "merged_at") or 0) if "boundary" in meta else 0


def _boundary(boundary: Fields, meta: Fields) -> Iterator[Entry]:
    if not boundary:
        return
    at = moment(meta, "ts")
    if "micro" in name(boundary, "kind"):
        ids = (item for item in listed(boundary, "cleared_tool_ids") if isinstance(item, str))
        yield Cleared(MAIN, at, frozenset(map(ToolUseId, ids)), whole(boundary, "tokens_saved"))
    else:
        yield Compacted(MAIN, at, whole(boundary, "pre_tokens"))


def _source(role: str, said: tuple[Block, ...], meta: Fields) -> Source:
    if meta.get("compact_summary") is True:
        return "summary"
    first = said[0]
    is_program = isinstance(first, Text) and first.text.startswith("<")
    return "attachment" if role != "user" or meta.get("is_meta") is True or is_program else "human"


def _moment(line: Fields, meta: Fields) -> datetime | None:
    return moment(meta, "ts", "timestamp") or moment(line, "timestamp", "ts", "created_at", "time")


def _read_usage(wire: Fields, dialect: Dialect) -> Usage | None:
    """None where no call was made: some programs log an answer of their own, with a bill of nothing."""
    try:
        usage = read_billed(wire, dialect) if wire else None
    except WireError:
        return None
    return usage if usage and (usage.prompt or usage.iterations) else None
