"""The content blocks of a request's messages, taken apart, and put together without those that were removed.

A message keeps its place when it loses blocks, so that a path means the same in the request and in what the
model sees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, PromptBlock
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import ToolUseId

__all__ = [
    "PromptBlock",
    "as_word",
    "get_tool_use_id",
    "is_thinking_block",
    "is_turn_start",
    "rebuild_body",
    "with_wire_fields",
]


def rebuild_body(body: JsonObject, blocks: Iterable[PromptBlock]) -> JsonObject:
    """The body with these blocks in its messages, and no others."""
    left: defaultdict[int, list[JsonObject]] = defaultdict(list)
    for block in blocks:
        left[block.turn].append(block.wire)
    messages = body.get("messages")
    rows = messages if isinstance(messages, tuple) else ()
    return JsonObject({**body, "messages": tuple(_refilled(row, left[at]) for at, row in enumerate(rows))})


def is_thinking_block(block: PromptBlock) -> bool:
    return block.role == "assistant" and block.kind in THINKING_TYPES


def is_turn_start(block: PromptBlock) -> bool:
    """More than a tool result from the user's side: a person, or a program on their behalf, has spoken."""
    return block.role == "user" and block.kind != "tool_result"


def get_tool_use_id(block: PromptBlock) -> ToolUseId:
    """Of a tool request, or of the request that a result answers."""
    return ToolUseId(as_word(block.wire.get("id" if block.kind == "tool_use" else "tool_use_id")))


def with_wire_fields(block: PromptBlock, **fields: Json) -> PromptBlock:
    """The block with some of its fields changed."""
    return replace(block, wire=JsonObject({**block.wire, **fields}))


def as_word(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _refilled(message: Json, blocks: list[JsonObject]) -> Json:
    if not isinstance(message, JsonObject):
        return message
    if isinstance(message.get("content"), str) and blocks:
        return message
    return JsonObject({**message, "content": tuple(blocks)})
