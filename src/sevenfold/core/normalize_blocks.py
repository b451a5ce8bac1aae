"""What is wrong with a message taken by itself, and the same message without it.

The tables say what the Messages API takes in messages of each role; a type that is in none of them is newer
than they are, and passes. `replace_block_surrogates` takes lone surrogates out of all texts of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze, replace_lone_surrogates, write_json
from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    write_block,
)


def replace_block_surrogates(block: Block) -> Block:
    """The block itself where all its text is sound."""
    return block if _is_sound_block(block) else _mended(block)


def _is_sound_block(block: Block) -> bool:
    if not all(map(_is_sound, _own_values(block))):
        return False
    if isinstance(block, ToolResult) and isinstance(block.content, tuple):
        return _is_sound(block.extra) and all(map(_is_sound_block, block.content))
    return isinstance(block, Opaque) or _is_sound(block.extra)


def _own_values(block: Block) -> tuple[Json, ...]:
    match block:
        case Text():
            return (block.text,)
        case Thinking():
            return (block.thinking, block.signature)
        case RedactedThinking():
            return (block.data,)
        case ToolUse():
            return (block.id, block.name, block.input)
        case ToolResult():
            return (block.tool_use_id, None if isinstance(block.content, tuple) else block.content)
        case Image() | Document():
            return (block.source,)
        case Compaction():
            return (block.content,)
        case Opaque():
            return (block.wire,)


def _is_sound(value: Json) -> bool:
    if isinstance(value, str):
        return replace_lone_surrogates(value) is value
    if isinstance(value, JsonObject):
        return all(map(_is_sound, value)) and all(map(_is_sound, value.values()))
    return all(map(_is_sound, value)) if isinstance(value, tuple) else True


def _mended(block: Block) -> Block:  # noqa: PLR0911 - one return a block type is the table
    extra = EMPTY_OBJECT if isinstance(block, Opaque) else _sound_object(block.extra)
    match block:
        case Text():
            return Text(replace_lone_surrogates(block.text), extra)
        case Thinking():
            signature = block.signature and replace_lone_surrogates(block.signature)
            return Thinking(replace_lone_surrogates(block.thinking), signature, extra)
        case RedactedThinking():
            return RedactedThinking(replace_lone_surrogates(block.data), extra)
        case ToolUse():
            id_ = ToolUseId(replace_lone_surrogates(block.id))
            return ToolUse(id_, replace_lone_surrogates(block.name), _sound_object(block.input), extra)
        case ToolResult():
            id_, content = ToolUseId(replace_lone_surrogates(block.tool_use_id)), block.content
            if isinstance(content, tuple):
                return replace(
                    block, tool_use_id=id_, content=tuple(map(replace_block_surrogates, content)), extra=extra
                )
            return replace(
                block, tool_use_id=id_, content=content and replace_lone_surrogates(content), extra=extra
            )
        case Image() | Document():
            return replace(block, source=_sound_object(block.source), extra=extra)
        case Compaction():
            return Compaction(block.content and replace_lone_surrogates(block.content), extra)
        case Opaque():
            return Opaque(_sound_object(block.wire))


def _sound_object(value: JsonObject) -> JsonObject:
    return JsonObject({replace_lone_surrogates(key): _sound_json(item) for key, item in value.items()})


def _sound_json(value: Json) -> Json:
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, JsonObject):
        return _sound_object(value)
    return tuple(_sound_json(item) for item in value) if isinstance(value, tuple) else value


FlawKind: TypeAlias = Literal["text", "fields", "block", "empty"]
"""Text that is no UTF-8; fields that no message has; a block that may not stand there; nothing at all."""

SERVER_TOOL_RESULTS = frozenset(
    {
        *("web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"),
        *("bash_code_execution_tool_result", "text_editor_code_execution_tool_result"),
        *("tool_search_tool_result", "mcp_tool_result", "advisor_tool_result"),
    }
)
"""What the provider's own tools answered: it stands in the assistant's message."""

_USER = frozenset({"text", "image", "document", "search_result", "tool_result", "container_upload"})
_ASSISTANT = SERVER_TOOL_RESULTS | {
    *("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "compaction"),
    *("container_upload", "mcp_tool_use", "mcp_tool_listing", "fallback"),
}
_SYSTEM = frozenset({"text", "tool_addition", "tool_removal"})
_IN_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference"})
_TAKEN: Mapping[Role, frozenset[str]] = {"user": _USER, "assistant": _ASSISTANT, "system": _SYSTEM}
_KNOWN = _USER | _ASSISTANT | _SYSTEM | _IN_RESULTS

_READ = frozenset(
    {
        *("text", "thinking", "redacted_thinking", "tool_use", "tool_result"),
        *("image", "document", "compaction"),
    }
)
"""Types that are never opaque unless a field is missing or of the wrong kind."""

_OWN_FIELDS: Mapping[Role, frozenset[str]] = {
    "user": frozenset(),
    "assistant": frozenset(),
    "system": frozenset({"clear_at", "output_config"}),
}


@dataclass(frozen=True, slots=True)
class MessageFlaw:
    flaw: FlawKind
    detail: str


@dataclass(frozen=True, slots=True)
class RepairedMessage:
    message: Message
    """The same object where nothing was wrong."""
    flaws: tuple[MessageFlaw, ...] = ()

    @property
    def is_empty(self) -> bool:
        return any(item.flaw == "empty" for item in self.flaws)


def repair_message(message: Message) -> RepairedMessage:
    """The message as the API takes it, but for how it stands beside others."""
    found: list[MessageFlaw] = []
    extra = _own_fields(message, found)
    blocks = _taken_blocks(message, found)
    if not blocks and not (message.role == "system" and extra.get("output_config")):
        return RepairedMessage(
            message, (*found, MessageFlaw("empty", f"a {message.role} message with nothing in it"))
        )
    if not found:
        return RepairedMessage(message)
    return RepairedMessage(Message(message.role, blocks, extra), tuple(found))


def block_type(block: Block) -> str:
    """The block's type on the wire."""
    return block.type if isinstance(block, Opaque) else _TYPES[type(block)]


def describe_block(block: Block, why: str) -> Text:
    """A block that cannot be sent as what it is, as text."""
    text = write_json(freeze(write_block(block))).decode()
    return Text(f"[{why}: {text}]")


def unwrap_result(result: ToolResult, why: str) -> Iterator[Block]:
    """A tool's result as what a user can say: its texts, images and documents."""
    content = result.content
    if not isinstance(content, tuple):
        yield Text(f"[{why}]\n{content}" if content else f"[{why}; it is empty]")
        return
    yield Text(f"[{why}]")
    for block in content:
        if isinstance(block, Text) and not block.text.strip():
            continue
        yield (
            block
            if block_type(block) in _USER - {"tool_result"}
            else describe_block(block, block_type(block))
        )


def _own_fields(message: Message, found: list[MessageFlaw]) -> JsonObject:
    strange = [key for key in message.extra if key not in _OWN_FIELDS[message.role]]
    if not strange:
        return message.extra
    found.append(MessageFlaw("fields", ", ".join(strange)))
    return message.extra.without(*strange)


def _taken_blocks(message: Message, found: list[MessageFlaw]) -> tuple[Block, ...]:
    kept: list[Block] = []
    for block in message.blocks:
        sound = replace_block_surrogates(block)
        if sound is not block:
            found.append(MessageFlaw("text", f"half a character in a {block_type(block)} block"))
        taken = _taken_block(sound, message.role)
        if taken is not sound:
            found.append(MessageFlaw("block", _why(sound, message.role)))
        if taken is not None:
            kept.append(taken)
    return tuple(kept)


def _taken_block(block: Block, role: Role) -> Block | None:
    """The block, what stands in for it, or None where nothing needs to."""
    kind = block_type(block)
    if _is_unreadable(block):
        return describe_block(block, _unreadable(kind))
    if isinstance(block, ToolResult) and role == "user":
        return _taken_result(block)
    if isinstance(block, (Thinking, RedactedThinking)):
        is_signed = isinstance(block, RedactedThinking) or block.signature is not None
        return block if role == "assistant" and is_signed else None
    if isinstance(block, Text):
        return _taken_text(block, role)
    if kind in _KNOWN and kind not in _TAKEN[role]:
        return Text(f"[{kind}]") if isinstance(block, (Image, Document)) else describe_block(block, kind)
    return block


def _taken_result(result: ToolResult) -> ToolResult:
    if not isinstance(result.content, tuple):
        return result
    inner = tuple(map(_taken_inside, result.content))
    is_same = all(one is other for one, other in zip(inner, result.content, strict=True))
    return result if is_same else replace(result, content=inner)


def _taken_inside(block: Block) -> Block:
    kind = block_type(block)
    if _is_unreadable(block):
        return describe_block(block, _unreadable(kind))
    return describe_block(block, kind) if kind in _KNOWN and kind not in _IN_RESULTS else block


def _is_unreadable(block: Block) -> bool:
    """No model is new enough to take it: it has no type, or lacks what its type says."""
    return isinstance(block, Opaque) and (not block.type or block.type in _READ)


def _unreadable(kind: str) -> str:
    return f"{kind or 'untyped'} block that cannot be read"


def _taken_text(block: Text, role: Role) -> Text | None:
    if not block.text.strip():
        return None
    # The newer version of the API refuses what it once sent itself.
    cited = role != "assistant" and block.extra.get("citations")
    return replace(block, extra=block.extra.without("citations")) if cited else block


def _why(block: Block, role: Role) -> str:
    if isinstance(block, Text):
        return f"citations in a {role} message" if block.text.strip() else "an empty text"
    if isinstance(block, Thinking) and role == "assistant":
        return "thinking without a signature"
    if _is_unreadable(block):
        return _unreadable(block_type(block))
    if isinstance(block, ToolResult) and role == "user":
        return f"what no tool result may hold, in that of {block.tool_use_id}"
    return f"a {block_type(block)} block in a {role} message"


_TYPES: Mapping[type[Block], str] = {
    Text: "text",
    Thinking: "thinking",
    RedactedThinking: "redacted_thinking",
    ToolUse: "tool_use",
    ToolResult: "tool_result",
    Image: "image",
    Document: "document",
    Compaction: "compaction",
}
