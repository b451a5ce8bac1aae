"""A request body taken apart into blocks, in the order they were written, and which of them the model sees.

A text where blocks are allowed is one text block. How one role's blocks are split into messages is kept in
the paths alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sevenfold.core.cache.assumptions import PROMPT_LEVELS, CacheChoices, PromptLevel
from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.models import Model

THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
EFFORT_KIND = "output_config"
"""The kind of a system message's change of effort: it has a place in the prompt, and no tokens of its own."""

_OUTSIDE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """One block and where it stands."""

    path: str
    level: PromptLevel
    role: str
    kind: str
    wire: JsonObject
    turn: int = _OUTSIDE
    """The index of its message; below zero outside the messages."""
    clears: bool = False
    """Its message is shown for one turn only."""

    @property
    def is_deferred(self) -> bool:
        return self.kind == "tool" and self.wire.get("defer_loading") is True


def list_blocks(body: JsonObject) -> tuple[PromptBlock, ...]:
    """Every block of the body, seen by the model or not."""
    return (*list_tools_and_system(body), *_messages(body))


def list_tools_and_system(body: JsonObject) -> tuple[PromptBlock, ...]:
    """The tools and the system prompt."""
    return (*_tools(body), *_system(body))


def list_message_blocks(turn: int, message: JsonObject) -> Iterator[PromptBlock]:
    """The blocks of one message, the `turn`-th of its request."""
    role = message.get("role")
    if not isinstance(role, str):
        raise WireError(f"messages.{turn}.role: expected user, assistant or system, not {role!r}")
    clears = message.get("clear_at") == "next_user_message"
    effort = message.get("output_config")
    if role == "system" and isinstance(effort, JsonObject):
        yield PromptBlock(
            path=f"messages.{turn}.output_config",
            level="messages",
            role=role,
            kind=EFFORT_KIND,
            wire=effort,
            turn=turn,
            clears=clears,
        )
    for index, block in enumerate(_blocks(f"messages.{turn}.content", message.get("content"))):
        path = f"messages.{turn}.content.{index}"
        yield PromptBlock(
            path=path, level="messages", role=role, kind=_kind(block), wire=block, turn=turn, clears=clears
        )


def list_rendered_blocks(
    body: JsonObject, blocks: Sequence[PromptBlock], model: Model, choices: CacheChoices
) -> tuple[PromptBlock, ...]:
    """The blocks that are rendered into the prompt, in that order."""
    first = next((index for index, block in enumerate(blocks) if block.turn != _OUTSIDE), len(blocks))
    frame = (block for block in blocks[:first] if choices.renders_deferred or not block.is_deferred)
    spoken = _last_spoken(blocks)
    drops_thinking = model.drops_thinking and not _edits_thinking(body)

    def is_gone(block: PromptBlock) -> bool:
        return block.turn < spoken and (block.clears or (drops_thinking and block.kind in THINKING_TYPES))

    inside = blocks[max(first, _last_compacted(blocks)) :]
    if drops_thinking or any(block.clears for block in inside):
        inside = [block for block in inside if not is_gone(block)]
    # A stable sort: only the web search tool is listed at one level and rendered at another.
    return (*sorted(frame, key=lambda block: PROMPT_LEVELS.index(block.level)), *inside)


def _tools(body: JsonObject) -> Iterator[PromptBlock]:
    for index, tool in enumerate(_list("tools", body.get("tools"))):
        kind = tool.get("type")
        # Switching web search on or off leaves the tools' cache alone and changes the system prompt.
        is_search = isinstance(kind, str) and kind.startswith("web_search")
        yield PromptBlock(
            path=f"tools.{index}",
            level="system" if is_search else "tools",
            role="tool",
            kind="tool",
            wire=tool,
        )


def _system(body: JsonObject) -> Iterator[PromptBlock]:
    system = body.get("system")
    for index, block in enumerate(_blocks("system", system) if system != "" else ()):
        yield PromptBlock(
            path=f"system.{index}", level="system", role="prompt", kind=_kind(block), wire=block
        )


def _messages(body: JsonObject) -> Iterator[PromptBlock]:
    for turn, message in enumerate(_list("messages", body.get("messages"))):
        yield from list_message_blocks(turn, message)


def _blocks(path: str, value: Json) -> Iterable[JsonObject]:
    if isinstance(value, str):
        return (JsonObject({"type": "text", "text": value}),)
    return _list(path, value)


def _list(path: str, value: Json) -> Iterator[JsonObject]:
    if value is None:
        return
    if not isinstance(value, tuple):
        raise WireError(f"{path}: expected a list, not {type(value).__name__}")
    for index, item in enumerate(value):
        if not isinstance(item, JsonObject):
            raise WireError(f"{path}.{index}: expected an object, not {type(item).__name__}")
        yield item


def _kind(block: JsonObject) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _last_spoken(blocks: Sequence[PromptBlock]) -> int:
    """The last message in which the user's side sent more than tool results: where a turn begins."""
    turns = (item.turn for item in reversed(blocks) if item.role == "user" and item.kind != "tool_result")
    return next(turns, _OUTSIDE)


def _last_compacted(blocks: Sequence[PromptBlock]) -> int:
    """Where the last compaction block stands that holds a summary: nothing before it is read."""
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if block.kind == "compaction" and block.turn != _OUTSIDE and block.wire.get("content") is not None:
            return index
    return 0


def _edits_thinking(body: JsonObject) -> bool:
    """Whether the request says itself what thinking to keep; whoever applies that edit has done so."""
    management = body.get("context_management")
    edits = management.get("edits") if isinstance(management, JsonObject) else None
    return isinstance(edits, tuple) and any(
        isinstance(edit, JsonObject) and str(edit.get("type")).startswith("clear_thinking") for edit in edits
    )
