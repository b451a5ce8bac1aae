"""Clears old tool results and old thinking on the way to the model.

The client's history stays as it is; what changes is what the model sees and what is billed.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from sevenfold.core.cache.prompt_blocks import PromptBlock
from sevenfold.core.cache.prompt_cache import PartCounter
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import ToolUseId
from sevenfold.simulator.checks.context_edits import (
    CLEAR_THINKING_EDIT,
    CLEAR_TOOLS_EDIT,
    ThinkingClearing,
    ToolClearing,
)
from sevenfold.simulator.wire.request_blocks import (
    as_word,
    get_tool_use_id,
    is_thinking_block,
    is_turn_start,
    with_wire_fields,
)


@dataclass(frozen=True, slots=True)
class EditedBlocks:
    """What became of the messages."""

    blocks: tuple[PromptBlock, ...]
    applied: tuple[JsonObject, ...] = ()
    cleared: frozenset[ToolUseId] = field(default_factory=frozenset[ToolUseId])


def apply_thinking_clearing(
    blocks: Sequence[PromptBlock], clearing: ThinkingClearing, count: PartCounter
) -> EditedBlocks:
    """Take the thinking of all but the newest turns out."""
    turns: list[list[PromptBlock]] = [[]]
    for block in blocks:
        if is_turn_start(block):
            turns.append([])
        turns[-1].append(block)
    thoughtful = [turn for turn in turns if any(is_thinking_block(block) for block in turn)]
    old = thoughtful[: -clearing.keep_turns] if clearing.keep_turns else []
    gone = [block for turn in old for block in turn if is_thinking_block(block)]
    if not gone:
        return EditedBlocks(tuple(blocks))
    paths = {block.path for block in gone}
    told = JsonObject(
        {
            "type": CLEAR_THINKING_EDIT,
            "cleared_thinking_turns": len(old),
            "cleared_input_tokens": sum(count("messages", block.wire) for block in gone),
        }
    )
    return EditedBlocks(tuple(block for block in blocks if block.path not in paths), (told,))


def apply_tool_clearing(
    blocks: Sequence[PromptBlock],
    clearing: ToolClearing,
    count: PartCounter,
    *,
    prompt_tokens: int,
    placeholder: str,
    already: AbstractSet[ToolUseId] = frozenset(),
) -> EditedBlocks:
    """Replace old tool results, oldest first, where the trigger says so.

    `already` were cleared by an earlier request: they stay cleared, and count for nothing.
    """
    before = _cleared(blocks, already, clearing, placeholder)
    saved = _tokens(blocks, count) - _tokens(before, count)
    pairs = _answered(before)
    used = prompt_tokens - saved if clearing.trigger.kind == "input_tokens" else len(pairs)
    chosen = frozenset(
        use
        for use, tool in list(pairs.items())[: max(0, len(pairs) - clearing.keep)]
        if tool not in clearing.spared and use not in already
    )
    if used <= clearing.trigger.value or not chosen:
        return EditedBlocks(before, cleared=frozenset(already & pairs.keys()))
    after = _cleared(before, chosen, clearing, placeholder)
    freed = _tokens(before, count) - _tokens(after, count)
    # A result may be shorter than its placeholder: it is cleared all the same, and nothing is freed.
    freed = max(0, freed)
    if freed < clearing.at_least_tokens:
        return EditedBlocks(before, cleared=frozenset(already & pairs.keys()))
    told = JsonObject(
        {"type": CLEAR_TOOLS_EDIT, "cleared_tool_uses": len(chosen), "cleared_input_tokens": freed}
    )
    return EditedBlocks(after, (told,), frozenset(already & pairs.keys()) | chosen)


def _answered(blocks: Sequence[PromptBlock]) -> dict[ToolUseId, str]:
    """Tool uses that have a result, oldest first, with the tool's name."""
    names = {
        get_tool_use_id(block): as_word(block.wire.get("name"))
        for block in blocks
        if block.kind == "tool_use"
    }
    results = (get_tool_use_id(block) for block in blocks if block.kind == "tool_result")
    return {use: names[use] for use in results if use in names}


def _cleared(
    blocks: Sequence[PromptBlock], ids: AbstractSet[ToolUseId], clearing: ToolClearing, placeholder: str
) -> tuple[PromptBlock, ...]:
    def replaced(block: PromptBlock) -> PromptBlock:
        if block.kind == "tool_result" and get_tool_use_id(block) in ids:
            return with_wire_fields(block, content=placeholder)
        is_use = block.kind == "tool_use" and get_tool_use_id(block) in ids
        if is_use and clearing.clears_input(as_word(block.wire.get("name"))):
            return with_wire_fields(block, input=EMPTY_OBJECT)
        return block

    return tuple(replaced(block) for block in blocks)


def _tokens(blocks: Sequence[PromptBlock], count: PartCounter) -> int:
    return sum(count("messages", block.wire) for block in blocks if block.kind in {"tool_use", "tool_result"})
