"""Clears old tool results and old thinking on the way to the model.

The client's history stays as it is; what changes is what the model sees and what is billed.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from sevenfold.core.cache_model import CountPart
from sevenfold.core.json import EMPTY, JsonObject
from sevenfold.core.messages import ToolUseId
from sevenfold.core.prompt_blocks import Placed
from sevenfold.simulator.edit_requests import CLEAR_THINKING, CLEAR_TOOLS, ThinkingClearing, ToolClearing
from sevenfold.simulator.view import is_thinking, starts_turn, tool_use_id, with_wire, word


@dataclass(frozen=True, slots=True)
class Edited:
    """What became of the messages."""

    blocks: tuple[Placed, ...]
    applied: tuple[JsonObject, ...] = ()
    cleared: frozenset[ToolUseId] = field(default_factory=frozenset[ToolUseId])


def apply_thinking(blocks: Sequence[Placed], clearing: ThinkingClearing, count: CountPart) -> Edited:
    """Take the thinking of all but the newest turns out."""
    turns: list[list[Placed]] = [[]]
    for block in blocks:
        if starts_turn(block):
            turns.append([])
        turns[-1].append(block)
    thoughtful = [turn for turn in turns if any(is_thinking(block) for block in turn)]
    old = thoughtful[: -clearing.keep_turns] if clearing.keep_turns else []
    gone = [block for turn in old for block in turn if is_thinking(block)]
    if not gone:
        return Edited(tuple(blocks))
    paths = {block.path for block in gone}
    told = JsonObject(
        {
            "type": CLEAR_THINKING,
            "cleared_thinking_turns": len(old),
            "cleared_input_tokens": sum(count("messages", block.wire) for block in gone),
        }
    )
    return Edited(tuple(block for block in blocks if block.path not in paths), (told,))


def apply_tools(
    blocks: Sequence[Placed],
    clearing: ToolClearing,
    count: CountPart,
    *,
    prompt_tokens: int,
    placeholder: str,
    already: AbstractSet[ToolUseId] = frozenset(),
) -> Edited:
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
        return Edited(before, cleared=frozenset(already & pairs.keys()))
    after = _cleared(before, chosen, clearing, placeholder)
    freed = _tokens(before, count) - _tokens(after, count)
    # A result may be shorter than its placeholder: it is cleared all the same, and nothing is freed.
    freed = max(0, freed)
    if freed < clearing.at_least_tokens:
        return Edited(before, cleared=frozenset(already & pairs.keys()))
    told = JsonObject({"type": CLEAR_TOOLS, "cleared_tool_uses": len(chosen), "cleared_input_tokens": freed})
    return Edited(after, (told,), frozenset(already & pairs.keys()) | chosen)


def _answered(blocks: Sequence[Placed]) -> dict[ToolUseId, str]:
    """Tool uses that have a result, oldest first, with the tool's name."""
    names = {tool_use_id(block): word(block.wire.get("name")) for block in blocks if block.kind == "tool_use"}
    results = (tool_use_id(block) for block in blocks if block.kind == "tool_result")
    return {use: names[use] for use in results if use in names}


def _cleared(
    blocks: Sequence[Placed], ids: AbstractSet[ToolUseId], clearing: ToolClearing, placeholder: str
) -> tuple[Placed, ...]:
    def replaced(block: Placed) -> Placed:
        if block.kind == "tool_result" and tool_use_id(block) in ids:
            return with_wire(block, content=placeholder)
        is_use = block.kind == "tool_use" and tool_use_id(block) in ids
        if is_use and clearing.clears_input(word(block.wire.get("name"))):
            return with_wire(block, input=EMPTY)
        return block

    return tuple(replaced(block) for block in blocks)


def _tokens(blocks: Sequence[Placed], count: CountPart) -> int:
    return sum(count("messages", block.wire) for block in blocks if block.kind in {"tool_use", "tool_result"})
