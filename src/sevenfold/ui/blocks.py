"""A conversation as the page shows it: messages of blocks, and cuts between them, as values and as JSON.

Long texts are clipped in a list of messages. The page asks for the whole text of one block.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from sevenfold.core.json import thaw
from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Image,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    write_block,
)

CLIP_CHARS = 2_000
"""Of a block in a list: a screen of text. The whole is one click away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBlock:
    kind: str
    text: str
    tool: str = ""
    use_id: str = ""
    is_error: bool = False
    note: str = ""
    """What became of it on the way to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    role: str
    source: str
    """Who it is from: human, model, tool, or what the engine or the agent added."""
    blocks: tuple[ShownBlock, ...]
    at: datetime | None = None
    call: int | None = None
    """The model call that produced it, counted from 0."""
    note: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCut:
    """A change of what had been sent before, and why."""

    title: str
    reason: str
    lines: tuple[str, ...] = ()
    at: datetime | None = None
    call: int | None = None
    """The first call after it."""
    layer: int = 0
    """0: none of ours."""


ShownItem: TypeAlias = ShownMessage | ShownCut


def show_blocks(blocks: Iterable[Block], tools: Mapping[str, str]) -> tuple[ShownBlock, ...]:
    """`tools` has the tool of each use, by its id."""
    return tuple(_show_block(block, tools) for block in blocks)


def _show_block(block: Block, tools: Mapping[str, str]) -> ShownBlock:
    match block:
        case Text(text):
            return ShownBlock(kind="text", text=text)
        case Thinking(thinking):
            return ShownBlock(kind="thinking", text=thinking)
        case ToolUse(id_, name, input_):
            return ShownBlock(kind="tool_use", text=_spell(thaw(input_)), tool=name, use_id=id_)
        case ToolResult(use_id, content, is_error):
            text = content if isinstance(content, str) else _join(show_blocks(content or (), tools))
            return ShownBlock(
                kind="tool_result",
                text=text,
                tool=tools.get(use_id, ""),
                use_id=use_id,
                is_error=bool(is_error),
            )
        case Compaction(content):
            return ShownBlock(kind="summary", text=content or "")
        case _:
            note = _NOT_SHOWN.get(type(block), "")
            return ShownBlock(kind="other", text="" if note else _spell(write_block(block)), note=note)


_NOT_SHOWN: Mapping[type, str] = {
    RedactedThinking: "thinking that the provider shows to nobody",
    Image: "an image, which is not shown here",
    Document: "a document, which is not shown here",
}


def _join(blocks: Sequence[ShownBlock]) -> str:
    return "\n".join(block.text or f"[{block.note}]" for block in blocks)


def _spell(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def choose_source(blocks: Sequence[ShownBlock], role: str, source: str) -> str:
    """Results of tools stand on the user's side, and nobody said them."""
    if role == "assistant":
        return "model"
    if source == "human" and blocks and all(block.kind == "tool_result" for block in blocks):
        return "tool"
    return source


def describe_item(item: ShownItem, number: int) -> dict[str, object]:
    at = None if item.at is None else round(item.at.timestamp())
    if isinstance(item, ShownCut):
        return {
            "kind": "cut",
            "n": number,
            "at": at,
            "call": item.call,
            "layer": item.layer,
            "title": item.title,
            "reason": item.reason,
            "lines": list(item.lines),
        }
    return {
        "kind": "message",
        "n": number,
        "at": at,
        "call": item.call,
        "role": item.role,
        "source": item.source,
        "note": item.note,
        "blocks": [_describe_block(block) for block in item.blocks],
    }


def _describe_block(block: ShownBlock) -> dict[str, object]:
    return {
        "kind": block.kind,
        "text": block.text[:CLIP_CHARS],
        "chars": len(block.text),
        "tool": block.tool,
        "is_error": block.is_error,
        "note": block.note,
    }


def note_results(message: ShownMessage, notes: Mapping[str, str]) -> ShownMessage:
    """The same, with what became of its tool results, by the id of their use."""
    if not any(block.kind == "tool_result" and block.use_id in notes for block in message.blocks):
        return message
    noted = (
        replace(block, note=notes[block.use_id])
        if block.kind == "tool_result" and block.use_id in notes
        else block
        for block in message.blocks
    )
    return replace(message, blocks=tuple(noted))
