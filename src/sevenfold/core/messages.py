"""Messages and their blocks as values, and their wire form in the Messages API.

Values hold exactly what the API sends and takes. They do not know where a message is stored or when it
came: equality is content. `read_message` and `write_message` convert without losing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import is_
from typing import Literal, NewType, TypeAlias

from sevenfold.core.canonical import CACHE_CONTROL, find_cache_control, strip_block
from sevenfold.core.errors import WireError
from sevenfold.core.json import (
    EMPTY_OBJECT,
    MAX_NESTING,
    Json,
    JsonObject,
    freeze,
    nesting_depth,
    thaw,
)

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
    """Whether it may have a breakpoint: thinking and empty texts may not."""
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


THINKING_PLACEHOLDER = "[thinking]"
"""For an answer that was thinking alone: a message must say something."""


def has_user_text(message: Message) -> bool:
    """Whether a user says something in it, beside handing in results."""
    return message.role == "user" and any(not isinstance(block, ToolResult) for block in message.blocks)


def change_blocks(message: Message, change: Callable[[Block], Block | None]) -> Message:
    """The message with each block changed, or left out; the same object where nothing changes."""
    if isinstance(message.content, str):
        return message
    changed = [change(block) for block in message.content]
    if all(new is old for new, old in zip(changed, message.content, strict=True)):
        return message
    left = tuple(block for block in changed if block is not None)
    return replace(message, content=left or (Text(THINKING_PLACEHOLDER),))


def without_message_thinking(message: Message) -> Message:
    """The message with no thinking in it; one that was nothing else says so, for none may be empty."""
    return change_blocks(message, _drop_thinking)


def _drop_thinking(block: Block) -> Block | None:
    return None if isinstance(block, (Thinking, RedactedThinking)) else block


def without_message_compaction(message: Message) -> Message:
    """A provider's compaction block as the user's text, for a request that cannot carry it."""
    if not any(isinstance(block, Compaction) for block in message.blocks):
        return message
    return replace(message, role="user", content=tuple(_spell_summary(block) for block in message.blocks))


def _spell_summary(block: Block) -> Block:
    return Text(block.content or THINKING_PLACEHOLDER) if isinstance(block, Compaction) else block


# Breakpoints are no part of what a message says, and a text is the same as one block with that text: clients
# move breakpoints and change between the two forms from request to request.
def is_same_message(one: Message, other: Message) -> bool:
    """Whether the API reads two messages alike: breakpoints, the order of keys, and whether a lone text is
    written as a block do not count, also inside tool results."""
    return one is other or one == other or _as_blocks(one) == _as_blocks(other)


def find_breakpoint(block: Block) -> JsonObject | None:
    """The breakpoint of a block: its own, or the last inside it, which ends hardly before the block does."""
    marker = _fields(block).get(CACHE_CONTROL)
    if isinstance(marker, JsonObject):
        return marker
    if isinstance(block, ToolResult) and isinstance(block.content, tuple):
        return next(filter(None, map(find_breakpoint, reversed(block.content))), None)
    if isinstance(block, (Document, Opaque)):
        return find_cache_control(_nested(block))
    return None


def without_breakpoints(message: Message) -> Message:
    """The message without breakpoints, also inside its blocks; the same object if it has none."""
    if isinstance(message.content, str):
        return message
    blocks = tuple([_without_breakpoint(block) for block in message.content])
    return message if all(map(is_, blocks, message.content)) else replace(message, content=blocks)


def _without_breakpoint(block: Block) -> Block:
    if isinstance(block, ToolResult) and isinstance(block.content, tuple):
        inside = tuple([_without_breakpoint(item) for item in block.content])
        if not all(map(is_, inside, block.content)):
            block = replace(block, content=inside)
    elif isinstance(block, Document):
        source = strip_block(_nested(block))["source"]
        if source != block.source and isinstance(source, JsonObject):
            block = replace(block, source=source)
    elif isinstance(block, Opaque):
        plain = strip_block(block.wire)
        return block if plain == block.wire else Opaque(plain)
    if CACHE_CONTROL not in block.extra:
        return block
    return replace(block, extra=block.extra.without(CACHE_CONTROL))


def _nested(block: Document | Opaque) -> JsonObject:
    """What of a block may hold other blocks."""
    return block.wire if isinstance(block, Opaque) else JsonObject({"source": block.source})


def _fields(block: Block) -> JsonObject:
    return block.wire if isinstance(block, Opaque) else block.extra


def _as_blocks(message: Message) -> Message:
    plain = without_breakpoints(message)
    return replace(plain, content=tuple([_as_result_blocks(block) for block in plain.blocks]))


def _as_result_blocks(block: Block) -> Block:
    if isinstance(block, ToolResult) and isinstance(block.content, str):
        return replace(block, content=(Text(block.content),))
    return block


# A block is read as its own class only when writing it back gives the same JSON; any other is `Opaque`. An
# explicit null in an optional field is neither the field nor its absence: it stays in `extra`.
MAX_MESSAGE_NESTING = MAX_NESTING - 50
"""Less than JSON itself may have, so that a message stays readable inside the record that stores it."""

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def read_message(wire: object) -> Message:
    """A message from its wire form: plain dicts, an SDK's objects, or frozen JSON."""
    frozen = _freeze_shallow(wire)
    if not isinstance(frozen, JsonObject):
        raise WireError(f"a message must be an object, not {type(wire).__name__}")
    named = frozen.get("role")
    role = _ROLES.get(named) if isinstance(named, str) else None
    if role is None:
        raise WireError(f"message role {named!r} is unknown; expected one of {', '.join(_ROLES)}")
    content = frozen.get("content")
    extra = frozen.without("role", "content")
    if isinstance(content, str):
        return Message(role, content, extra)
    if isinstance(content, tuple):
        return Message(role, tuple(_read_item(item, index) for index, item in enumerate(content)), extra)
    raise WireError(f"message content must be text or a list of blocks, not {type(content).__name__}")


def write_message(message: Message) -> dict[str, object]:
    """The wire form, ready for an SDK: fresh dicts and lists that share nothing with the value."""
    content = message.content
    wire: dict[str, object] = {
        "role": message.role,
        "content": content if isinstance(content, str) else [write_block(block) for block in content],
    }
    return _with_extra(wire, message.extra)


def read_block(wire: object) -> Block:
    """A block from its wire form; what is not understood becomes `Opaque`, never an error."""
    frozen = _freeze_shallow(wire)
    if not isinstance(frozen, JsonObject):
        raise WireError(f"a content block must be an object, not {type(wire).__name__}")
    return _read_object(frozen)


def write_block(block: Block) -> dict[str, object]:
    """The wire form of one block."""
    return _with_extra(_named_fields(block), EMPTY_OBJECT if isinstance(block, Opaque) else block.extra)


def _named_fields(block: Block) -> dict[str, object]:  # noqa: PLR0911 - one return a block type is the table
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking():
            return _present("thinking", {"thinking": block.thinking, "signature": block.signature})
        case RedactedThinking():
            return {"type": "redacted_thinking", "data": block.data}
        case ToolUse():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": thaw(block.input)}
        case ToolResult():
            content = block.content
            inner = [write_block(item) for item in content] if isinstance(content, tuple) else content
            fields = {"tool_use_id": block.tool_use_id, "content": inner, "is_error": block.is_error}
            return _present("tool_result", fields)
        case Image():
            return {"type": "image", "source": thaw(block.source)}
        case Document():
            return {"type": "document", "source": thaw(block.source)}
        case Compaction():
            return {"type": "compaction", "content": block.content}
        case Opaque():
            return {key: thaw(item) for key, item in block.wire.items()}


def _present(kind: str, fields: Mapping[str, object]) -> dict[str, object]:
    return {"type": kind} | {key: value for key, value in fields.items() if value is not None}


def _with_extra(wire: dict[str, object], extra: JsonObject) -> dict[str, object]:
    for key, value in extra.items():
        # A field that was null on the wire and has a value since keeps the value.
        wire.setdefault(key, thaw(value))
    return wire


def _extra(wire: JsonObject, *named: str) -> JsonObject:
    return JsonObject({key: value for key, value in wire.items() if key not in named or value is None})


def _freeze_shallow(wire: object) -> Json:
    frozen = freeze(wire)
    depth = nesting_depth(frozen)
    if depth > MAX_MESSAGE_NESTING:
        raise WireError(
            f"a message {depth} levels deep cannot be kept; at most {MAX_MESSAGE_NESTING} are allowed"
        )
    return frozen


def _read_item(item: Json, index: int) -> Block:
    if not isinstance(item, JsonObject):
        raise WireError(f"content[{index}]: a content block must be an object, not {type(item).__name__}")
    return _read_object(item)


def _read_object(wire: JsonObject) -> Block:
    kind = wire.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    block = reader(wire) if reader else None
    return block if block is not None else Opaque(wire)


def _read_text(wire: JsonObject) -> Block | None:
    text = wire.get("text")
    return Text(text, wire.without("type", "text")) if isinstance(text, str) else None


def _read_thinking(wire: JsonObject) -> Block | None:
    thinking, signature = wire.get("thinking"), wire.get("signature")
    if not isinstance(thinking, str) or not _optional(wire, "signature", str):
        return None
    text = signature if isinstance(signature, str) else None
    return Thinking(thinking, text, _extra(wire, "type", "thinking", "signature"))


def _read_redacted(wire: JsonObject) -> Block | None:
    data = wire.get("data")
    return RedactedThinking(data, wire.without("type", "data")) if isinstance(data, str) else None


def _read_tool_use(wire: JsonObject) -> Block | None:
    id, name, input = wire.get("id"), wire.get("name"), wire.get("input")  # noqa: A001 - the wire's own names
    if not (isinstance(id, str) and isinstance(name, str) and isinstance(input, JsonObject)):
        return None
    return ToolUse(ToolUseId(id), name, input, wire.without("type", "id", "name", "input"))


def _read_tool_result(wire: JsonObject) -> Block | None:
    id, content, failed = wire.get("tool_use_id"), wire.get("content"), wire.get("is_error")  # noqa: A001
    if not isinstance(id, str) or not _optional(wire, "is_error", bool):
        return None
    if not _optional(wire, "content", (str, tuple)):
        return None
    if isinstance(content, tuple):
        items = [_read_object(item) for item in content if isinstance(item, JsonObject)]
        if len(items) < len(content):
            return None
        content = tuple(items)
    return ToolResult(
        ToolUseId(id),
        content if isinstance(content, (str, tuple)) else None,
        failed if isinstance(failed, bool) else None,
        _extra(wire, "type", "tool_use_id", "content", "is_error"),
    )


def _read_image(wire: JsonObject) -> Block | None:
    source = wire.get("source")
    return Image(source, wire.without("type", "source")) if isinstance(source, JsonObject) else None


def _read_document(wire: JsonObject) -> Block | None:
    source = wire.get("source")
    return Document(source, wire.without("type", "source")) if isinstance(source, JsonObject) else None


def _read_compaction(wire: JsonObject) -> Block | None:
    content = wire.get("content")
    if "content" not in wire or not (content is None or isinstance(content, str)):
        return None
    return Compaction(content, wire.without("type", "content"))


def _optional(wire: JsonObject, key: str, kind: type | tuple[type, ...]) -> bool:
    """Absent, null, or there with the right kind."""
    value = wire.get(key)
    return value is None or isinstance(value, kind)


_READERS: Mapping[str, Callable[[JsonObject], Block | None]] = {
    "text": _read_text,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted,
    "tool_use": _read_tool_use,
    "tool_result": _read_tool_result,
    "image": _read_image,
    "document": _read_document,
    "compaction": _read_compaction,
}
