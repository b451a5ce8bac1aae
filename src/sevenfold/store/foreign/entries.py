"""What a line of another agent's transcript says, whoever wrote it.

A reader turns lines into entries as they come and keeps no history; `replay` makes calls from entries, and
costs from calls. A file may hold several conversations: `MAIN_CONVERSATION` is the main one, and each
subagent has another. The functions at the end read JSON of any shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, NewType, TypeAlias, cast

from sevenfold.core.errors import WireError
from sevenfold.core.messages import Block, Role, Text, ToolUseId, read_block
from sevenfold.core.usage import Usage

ForeignAgent: TypeAlias = Literal["claude-code", "codex", "messages"]
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

    lane: ConversationId
    key: LineKey
    at: datetime | None
    role: Role
    blocks: tuple[Block, ...]
    source: ForeignSource = "human"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOutput:
    """Part of what a model call produced. All parts of it have its id; usage is repeated, or comes last."""

    lane: ConversationId
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCompaction:
    """The history before this was replaced by what comes next."""

    lane: ConversationId
    at: datetime | None
    before_tokens: int | None = None
    kept: frozenset[LineKey] = frozenset()
    """Lines that stay in the context as they were."""
    kept_from: LineKey = NO_LINE_KEY
    """Or the first of a run of such lines, up to the boundary."""


@dataclass(frozen=True, slots=True)
class ForeignClearing:
    """Old tool results were taken out of the context."""

    lane: ConversationId
    at: datetime | None
    tool_use_ids: frozenset[ToolUseId] = frozenset()
    saved_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class UnknownLine:
    """A line of a type that no reader knows."""

    type: str


ForeignEntry: TypeAlias = (
    ForeignSession | ForeignInput | ForeignOutput | ForeignCompaction | ForeignClearing | UnknownLine
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
