"""What a line of another agent's transcript says, whoever wrote it.

A reader turns lines into entries as they come and keeps no history; `replay` makes calls from entries, and
costs from calls. A file may hold several conversations: `MAIN_CONVERSATION` is the main one, and each
subagent has another. `as_fields` and the functions after it read JSON of any shape. `PlainReader` reads plain
Messages JSONL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, NewType, TypeAlias, cast

from sevenfold.core.errors import WireError
from sevenfold.core.messages import Block, Role, Text, ToolUseId, read_block
from sevenfold.core.usage import Usage, read_stored_usage

ForeignAgent: TypeAlias = Literal["claude-code", "codex", "messages", "sevenfold"]
AGENT_NAMES: dict[ForeignAgent, str] = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "messages": "messages",
    "sevenfold": "Sevenfold",
}
CacheDialect: TypeAlias = Literal["anthropic", "openai"]
"""Whose way of caching: the prefix of a breakpoint is kept, or every prompt is."""
ForeignSource: TypeAlias = Literal["human", "attachment", "memory", "summary", "system_prompt"]
"""Who wrote what stands on the user's side of a conversation."""

ConversationId = NewType("ConversationId", str)
CallId = NewType("CallId", str)
LineKey = NewType("LineKey", str)
"""A line's own id, by which a boundary names what it kept; "" where lines have none."""

MAIN_CONVERSATION = ConversationId("")
NO_LINE_KEY = LineKey("")


@dataclass(frozen=True, slots=True)
class ForeignSession:
    """What a file says of itself. Lines say it again and again; the last word counts."""

    session: str = ""
    project: str = ""
    """The folder it was run in."""
    version: str = ""
    """Of the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignInput:
    """Something joined the conversation that no model call produced."""

    conversation: ConversationId
    key: LineKey
    at: datetime | None
    role: Role
    blocks: tuple[Block, ...]
    source: ForeignSource = "human"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOutput:
    """Part of what a model call produced. All parts of it have its id; usage is repeated, or comes last."""

    conversation: ConversationId
    key: LineKey
    at: datetime | None
    call: CallId
    """ "" where the log has no id: then the part is the whole."""
    model: str
    blocks: tuple[Block, ...]
    usage: Usage | None = None
    is_complete: bool = False
    """The log says why it stopped, so its output count is final and not a stream's first value."""
    dialect: CacheDialect = "anthropic"
    cleared_tokens: int = 0
    """What the provider took out of this request by itself (`context_management`)."""
    is_simulated: bool | None = None
    """Whether our simulator answered; None where the log does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCompaction:
    """The history before this was replaced by what comes next."""

    conversation: ConversationId
    at: datetime | None
    before_tokens: int | None = None
    kept: frozenset[LineKey] = frozenset()
    """Lines that stay in the context as they were."""
    kept_from: LineKey = NO_LINE_KEY
    """Or the first of a run of such lines, up to the boundary."""


@dataclass(frozen=True, slots=True)
class ForeignClearing:
    """Old tool results were taken out of the context."""

    conversation: ConversationId
    at: datetime | None
    tool_use_ids: frozenset[ToolUseId] = frozenset()
    saved_tokens: int | None = None


RequestChange: TypeAlias = Literal["", "system prompt", "tools", "parameters", "history"]
"""What of a request is not as in the one before it, the first of these; "" for what was only added to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRequest:
    """A request as it was sent, which its answer follows."""

    conversation: ConversationId
    at: datetime | None
    changed: RequestChange = ""
    system: str = ""
    """The system prompt, where it or the tools are new."""
    tools: str = ""
    """The tools, as JSON, likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSideCall:
    """A call that is part of the bill, and of which the log shows nothing else: the one of a compaction."""

    conversation: ConversationId
    at: datetime | None
    call: CallId
    model: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class UnknownLine:
    """A line of a type that no reader knows."""

    type: str


ForeignEntry: TypeAlias = (
    ForeignSession
    | ForeignInput
    | ForeignOutput
    | ForeignCompaction
    | ForeignClearing
    | ForeignRequest
    | ForeignSideCall
    | UnknownLine
)


# Reading JSON that may be anything: a value that is missing or of another type counts as absent.
JsonFields: TypeAlias = Mapping[str, object]

NO_JSON_FIELDS: JsonFields = MappingProxyType({})
_MAX_NAME_CHARS = 200
"""No id, model or type is longer; what is longer is no name, and would fill the report."""


def as_fields(value: object) -> JsonFields:
    """The object itself, or an empty one."""
    return cast("JsonFields", value) if isinstance(value, dict) else NO_JSON_FIELDS


def get_object(fields: JsonFields, key: str) -> JsonFields:
    return as_fields(fields.get(key))


def get_list(fields: JsonFields, key: str) -> list[object]:
    value = fields.get(key)
    return cast("list[object]", value) if isinstance(value, list) else []


def get_text(fields: JsonFields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def get_name(fields: JsonFields, *keys: str) -> str:
    """The first of these that is a short text: an id, a model, a type."""
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str) and value:
            return value[:_MAX_NAME_CHARS]
    return ""


def get_int(fields: JsonFields, key: str) -> int | None:
    value = fields.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def get_time(fields: JsonFields, *keys: str) -> datetime | None:
    """A time in UTC, from ISO text or from seconds since 1970."""
    for key in keys:
        value = fields.get(key)
        try:
            if isinstance(value, str):
                parsed = datetime.fromisoformat(value)
                return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            continue
    return None


def as_blocks(content: object) -> tuple[Block, ...]:
    """Content as blocks: text alone is one; what is no block is left out."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not isinstance(content, list):
        return ()
    found = (_block(item) for item in cast("list[object]", content))
    return tuple(item for item in found if item is not None)


def _block(item: object) -> Block | None:
    if isinstance(item, str):
        return Text(item)
    try:
        return read_block(item)
    except WireError:
        return None


# One message a line: a message, an answer as the API returned it, or either with a `meta` object that holds
# model, usage, time and what happened to the context. Usage may count either provider's way.

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
            yield ForeignInput(conversation=MAIN_CONVERSATION, key=key, at=at, role="user", blocks=before)
        yield from _boundary(get_object(meta, "boundary"), meta)
        if role == "assistant":
            yield self._answered(line, message, after)
        elif after:
            yield ForeignInput(
                conversation=MAIN_CONVERSATION,
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
            conversation=MAIN_CONVERSATION,
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
    text = get_text(meta, "system")
    if text:
        yield ForeignInput(
            conversation=MAIN_CONVERSATION,
            key=LineKey(""),
            at=_moment(line, meta),
            role="system",
            blocks=(Text(text),),
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
        yield ForeignCompaction(
            conversation=MAIN_CONVERSATION, at=at, before_tokens=get_int(boundary, "pre_tokens")
        )


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
