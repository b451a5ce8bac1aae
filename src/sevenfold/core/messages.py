"""Messages and their blocks, as values.

They hold exactly what the Messages API sends and takes (`core/wire.py` converts), nothing about where a
message is stored or when it came: identity is the store's concern, equality is content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NewType, TypeAlias

from sevenfold.core.json import EMPTY_OBJECT, JsonObject

ToolUseId = NewType("ToolUseId", str)
Role: TypeAlias = Literal["user", "assistant", "system"]
"""`system` is a message in mid-conversation, not the system prompt."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    extra: JsonObject = EMPTY_OBJECT
    """Every field this class does not name (citations, cache_control, …), kept as it came."""


@dataclass(frozen=True, slots=True)
class Thinking:
    thinking: str
    signature: str | None = None
    extra: JsonObject = EMPTY_OBJECT


@dataclass(frozen=True, slots=True)
class RedactedThinking:
    data: str
    extra: JsonObject = EMPTY_OBJECT


@dataclass(frozen=True, slots=True)
class ToolUse:
    id: ToolUseId
    name: str
    input: JsonObject
    extra: JsonObject = EMPTY_OBJECT


@dataclass(frozen=True, slots=True)
class ToolResult:
    tool_use_id: ToolUseId
    content: str | tuple[Block, ...] | None
    """None when there was none on the wire: some clients leave out an empty result's content."""
    is_error: bool | None = None
    extra: JsonObject = EMPTY_OBJECT


@dataclass(frozen=True, slots=True)
class Image:
    source: JsonObject
    extra: JsonObject = EMPTY_OBJECT


@dataclass(frozen=True, slots=True)
class Document:
    source: JsonObject
    extra: JsonObject = EMPTY_OBJECT


@dataclass(frozen=True, slots=True)
class Compaction:
    content: str | None
    """None is a compaction that failed: it travels on as a no-op."""
    extra: JsonObject = EMPTY_OBJECT


@dataclass(frozen=True, slots=True)
class Opaque:
    """A block of a type we do not know, or know and cannot read: carried through untouched."""

    wire: JsonObject

    @property
    def type(self) -> str:
        kind = self.wire.get("type")
        return kind if isinstance(kind, str) else ""


Block: TypeAlias = (
    Text | Thinking | RedactedThinking | ToolUse | ToolResult | Image | Document | Compaction | Opaque
)


def is_breakpoint_allowed(block: Block) -> bool:
    """Whether a cache marker may stand on it: not on thinking, nor on an empty text."""
    if isinstance(block, (Thinking, RedactedThinking)):
        return False
    return not (isinstance(block, Text) and not block.text)


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str | tuple[Block, ...]
    """Text alone, or blocks; the API takes both and the difference is kept."""
    extra: JsonObject = EMPTY_OBJECT

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content as blocks, whichever way it was written."""
        return (Text(self.content),) if isinstance(self.content, str) else self.content
