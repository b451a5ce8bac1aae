"""Text that UTF-8 can hold. A string may have halves of a surrogate pair in it, from a tool that cut its
output in the middle of a character or from JSON that was escaped so; no provider takes that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sevenfold.core.json import EMPTY, Json, JsonObject
from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)


def sound_text(text: str) -> str:
    """The text itself where nothing is wrong. Halves that belong together are joined, others replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def sound_block(block: Block) -> Block:
    """The block itself where all its text is sound."""
    return block if all(sound_text(text) is text for text in _texts(block)) else _mended(block)


def _texts(block: Block) -> Iterator[str]:
    if isinstance(block, ToolResult) and isinstance(block.content, tuple):
        for item in block.content:
            yield from _texts(item)
    yield from _texts_within(_own_values(block))
    if not isinstance(block, Opaque) and block.extra is not EMPTY:
        yield from _texts_within(block.extra)


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


def _texts_within(value: Json) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, JsonObject):
            yield from item
            waiting += item.values()
        elif isinstance(item, tuple):
            waiting += item


def _mended(block: Block) -> Block:  # noqa: PLR0911 - one return a block type is the table
    extra = EMPTY if isinstance(block, Opaque) else _sound_object(block.extra)
    match block:
        case Text():
            return Text(sound_text(block.text), extra)
        case Thinking():
            signature = block.signature and sound_text(block.signature)
            return Thinking(sound_text(block.thinking), signature, extra)
        case RedactedThinking():
            return RedactedThinking(sound_text(block.data), extra)
        case ToolUse():
            id_ = ToolUseId(sound_text(block.id))
            return ToolUse(id_, sound_text(block.name), _sound_object(block.input), extra)
        case ToolResult():
            id_, content = ToolUseId(sound_text(block.tool_use_id)), block.content
            if isinstance(content, tuple):
                return replace(block, tool_use_id=id_, content=tuple(map(sound_block, content)), extra=extra)
            return replace(block, tool_use_id=id_, content=content and sound_text(content), extra=extra)
        case Image() | Document():
            return replace(block, source=_sound_object(block.source), extra=extra)
        case Compaction():
            return Compaction(block.content and sound_text(block.content), extra)
        case Opaque():
            return Opaque(_sound_object(block.wire))


def _sound_object(value: JsonObject) -> JsonObject:
    return JsonObject({sound_text(key): _sound_json(item) for key, item in value.items()})


def _sound_json(value: Json) -> Json:
    if isinstance(value, str):
        return sound_text(value)
    if isinstance(value, JsonObject):
        return _sound_object(value)
    return tuple(_sound_json(item) for item in value) if isinstance(value, tuple) else value
