"""The blocks of a request's messages, taken apart and put together again less what was taken out.

A message keeps its place when it loses blocks, so that a path means the same in what was sent and in what the
model sees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import ToolUseId
from sevenfold.core.prompt_blocks import THINKING, Placed

__all__ = [
    "Placed",
    "is_thinking",
    "rebuilt",
    "starts_turn",
    "tool_use_id",
    "with_wire",
    "word",
]


def rebuilt(body: JsonObject, blocks: Iterable[Placed]) -> JsonObject:
    """The body with these blocks in its messages, and no others."""
    left: defaultdict[int, list[JsonObject]] = defaultdict(list)
    for block in blocks:
        left[block.turn].append(block.wire)
    messages = body.get("messages")
    rows = messages if isinstance(messages, tuple) else ()
    return JsonObject({**body, "messages": tuple(_refilled(row, left[at]) for at, row in enumerate(rows))})


def is_thinking(block: Placed) -> bool:
    return block.role == "assistant" and block.kind in THINKING


def starts_turn(block: Placed) -> bool:
    """More than a tool result from the user's side: a person, or a program on their behalf, has spoken."""
    return block.role == "user" and block.kind != "tool_result"


def tool_use_id(block: Placed) -> ToolUseId:
    """Of a tool request, or of the request that a result answers."""
    return ToolUseId(word(block.wire.get("id" if block.kind == "tool_use" else "tool_use_id")))


def with_wire(block: Placed, **fields: Json) -> Placed:
    """The block with some of its fields changed."""
    return replace(block, wire=JsonObject({**block.wire, **fields}))


def word(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _refilled(message: Json, blocks: list[JsonObject]) -> Json:
    if not isinstance(message, JsonObject):
        return message
    if isinstance(message.get("content"), str) and blocks:
        return message
    return JsonObject({**message, "content": tuple(blocks)})
