"""Cuts a reply: at a stop sequence, at `max_tokens`, or at the end of the window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sevenfold.core.cache.prompt_cache import PartCounter
from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Block, RedactedThinking, Text, Thinking, ToolUse, ToolUseId
from sevenfold.simulator.checks.thinking_check import render_block_wire
from sevenfold.simulator.responders.brain_protocol import Reply


@dataclass(frozen=True, slots=True)
class OutputRoom:
    """How much may be said."""

    max_tokens: int
    window_tokens: int
    """What the window has left after the prompt."""

    @property
    def tokens(self) -> int:
        return min(self.max_tokens, self.window_tokens)

    @property
    def reason(self) -> str:
        """Why a reply ended that was cut."""
        return "max_tokens" if self.max_tokens <= self.window_tokens else "model_context_window_exceeded"


@dataclass(frozen=True, slots=True)
class LimitedReply:
    """What is really returned."""

    blocks: tuple[Block, ...]
    stop_reason: str
    stop_sequence: str | None = None
    is_cut_thinking: bool = False
    """It ended while the model was still thinking."""


@dataclass(frozen=True, slots=True)
class OutputTokens:
    """What an answer is billed as."""

    output: int
    thinking: int
    """Of the output."""


LIMIT_STOPS = frozenset({"max_tokens", "model_context_window_exceeded"})
"""Reasons that mean: the model would have gone on, and used all the room it had."""


def compute_billed_tokens(output: LimitedReply, room: OutputRoom, said: int, thought: int) -> OutputTokens:
    """An answer that ran out of room is billed all of it, however little of it could be returned.

    `said` are the tokens of what is returned, `thought` those of the thinking in it.
    """
    if output.stop_reason not in LIMIT_STOPS:
        tokens = min(max(1, said), room.tokens)
        return OutputTokens(tokens, min(thought, tokens))
    spoken = min(said - thought, room.tokens)
    return OutputTokens(
        room.tokens, room.tokens - spoken if output.is_cut_thinking else min(thought, room.tokens)
    )


def fit_reply(
    reply: Reply, room: OutputRoom, stops: Sequence[str], count: PartCounter, *, keeps_tools: bool = False
) -> LimitedReply:
    """The part of a reply that comes before the first reason to stop."""
    natural = "tool_use" if any(isinstance(block, ToolUse) for block in reply.blocks) else "end_turn"
    output = _at_stop(LimitedReply(reply.blocks, reply.stop_reason or natural), stops)
    kept: list[Block] = []
    left = room.tokens
    for block in output.blocks:
        cost = count("messages", render_block_wire(block))
        if cost > left:
            part = _cut(block, left, count, keeps_tools=keeps_tools)
            is_thinking = isinstance(block, (Thinking, RedactedThinking))
            return LimitedReply(
                (*kept, part) if part else tuple(kept), room.reason, is_cut_thinking=is_thinking
            )
        left -= cost
        kept.append(block)
    return output


def with_tool_ids(blocks: Sequence[Block], new_id: str) -> tuple[Block, ...]:
    """Tool requests that came without an id get one made from the reply's."""
    return tuple(
        replace(block, id=ToolUseId(f"toolu_{new_id}{at:02d}"))
        if isinstance(block, ToolUse) and not block.id
        else block
        for at, block in enumerate(blocks)
    )


def _at_stop(output: LimitedReply, stops: Sequence[str]) -> LimitedReply:
    for at, block in enumerate(output.blocks):
        if not isinstance(block, Text):
            continue
        ends = {block.text.find(stop): stop for stop in stops if stop in block.text}
        if ends:
            end = min(ends)
            said = (Text(block.text[:end]),) if end else ()
            return LimitedReply((*output.blocks[:at], *said), "stop_sequence", ends[end])
    return output


def _cut(block: Block, tokens: int, count: PartCounter, *, keeps_tools: bool) -> Block | None:
    """As much of a text as fits; of anything else nothing, since half a tool request is none.

    Where tool requests are kept, what was asked is lost, and the tool's name is left.
    """
    if isinstance(block, ToolUse) and keeps_tools:
        return replace(block, input=EMPTY_OBJECT)
    if not isinstance(block, Text):
        return None
    low, high = 0, len(block.text)
    while low < high:
        middle = (low + high + 1) // 2
        if count("messages", render_block_wire(Text(block.text[:middle]))) <= tokens:
            low = middle
        else:
            high = middle - 1
    return Text(block.text[:low]) if low else None
