"""A view as rounds: what can be dropped or kept without separating a call from its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sevenfold.core.messages import Compaction, Message, ToolResult
from sevenfold.layers.compaction.settings import CompactSettings


@dataclass(frozen=True, slots=True)
class RoundSpan:
    """Messages that belong together: an answer and everything up to the next one."""

    start: int
    stop: int
    tokens: int


@dataclass(frozen=True, slots=True)
class TrimPlan:
    """Which messages a shorter request leaves out."""

    start: int
    """The first that is dropped: what stands before is a summary already, and stays."""
    stop: int
    """The first after them that stays."""
    rounds: int
    tokens: int


def split_rounds(messages: Sequence[Message], counts: Sequence[int]) -> tuple[RoundSpan, ...]:
    """The rounds of a view, oldest first. Answers in a row, and answers whose results come later, are one."""
    starts = [
        at for at, message in enumerate(messages) if at == 0 or _begins_round(messages[at - 1], message)
    ]
    stops = [*starts[1:], len(messages)]
    return tuple(
        RoundSpan(start, stop, sum(counts[start:stop])) for start, stop in zip(starts, stops, strict=True)
    )


def _begins_round(before: Message, message: Message) -> bool:
    """A round begins with an answer, or with a person's words that answer no call."""
    if message.role == "assistant":
        return before.role != "assistant"
    return before.role == "assistant" and not _has_results(message) and message.role == "user"


def _has_results(message: Message) -> bool:
    return any(isinstance(block, ToolResult) for block in message.blocks)


def count_head_messages(messages: Sequence[Message], is_summary: Sequence[bool]) -> int:
    """How many messages at the beginning are the work of an earlier compaction."""
    length = 0
    while length < len(messages) and (
        is_summary[length] or any(isinstance(block, Compaction) for block in messages[length].blocks)
    ):
        length += 1
    return length


def plan_trim(rounds: Sequence[RoundSpan], overshoot: int | None, settings: CompactSettings) -> TrimPlan:
    """The oldest rounds that cover an overshoot, or a share of all where none was stated; never the last."""
    if len(rounds) < 2:
        start = rounds[0].start if rounds else 0
        return TrimPlan(start, start, 0, 0)
    if overshoot is None:
        count = math.ceil(len(rounds) * settings.trim_pct / 100)
    else:
        count, covered = 0, 0
        while covered < overshoot and count < len(rounds):
            covered += rounds[count].tokens
            count += 1
    count = min(max(count, 1), len(rounds) - 1)
    dropped = rounds[:count]
    return TrimPlan(dropped[0].start, dropped[-1].stop, count, sum(item.tokens for item in dropped))


def choose_kept_start(rounds: Sequence[RoundSpan], budget_tokens: int, *, length: int) -> int:
    """Where the newest rounds begin that fit the budget together; `length`, the view's end, if none do."""
    start, spent = length, 0
    for item in reversed(rounds):
        spent += item.tokens
        if spent > budget_tokens:
            break
        start = item.start
    return start


def find_round_start(rounds: Sequence[RoundSpan], index: int) -> int:
    """The beginning of the round that a message belongs to: a place where the view may be parted."""
    return next((item.start for item in rounds if item.start <= index < item.stop), index)
