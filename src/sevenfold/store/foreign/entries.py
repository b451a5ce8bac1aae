"""What a line of somebody else's transcript says, whoever wrote it.

A reader turns lines into entries as they come and keeps no history; who makes calls out of entries, and money
out of calls, is `replay`. A *lane* is one conversation of a file: "" is the main one, sub-agents have more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NewType, TypeAlias

from sevenfold.core.messages import Block, Role, ToolUseId
from sevenfold.core.usage import Usage

ForeignAgent: TypeAlias = Literal["claude-code", "codex", "messages"]
CacheDialect: TypeAlias = Literal["anthropic", "openai"]
"""Whose way of caching: a marker's prefix is kept, or every prompt is."""
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
