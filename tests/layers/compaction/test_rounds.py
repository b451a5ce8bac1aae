"""Rounds: what belongs together is dropped or kept together."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Compaction, Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.compaction.trim import (
    RoundSpan,
    choose_kept_start,
    count_head_messages,
    find_round_start,
    plan_trim,
    split_rounds,
)

SETTINGS = CompactSettings()
SAYS = Message("user", "Go on.")
ANSWERS = Message("assistant", "Done.")
REMINDS = Message("system", "The date has changed.")


def asks(name: str) -> Message:
    return Message("assistant", (Text("I look."), ToolUse(ToolUseId(name), "Read", EMPTY_OBJECT)))


def gets(name: str) -> Message:
    return Message("user", (ToolResult(ToolUseId(name), "text"),))


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = []
    for number in range(draw(st.integers(1, 12))):
        match draw(st.sampled_from(["said", "tool", "reminded", "two answers"])):
            case "said":
                messages += [SAYS, ANSWERS]
            case "reminded":
                messages += [SAYS, REMINDS, ANSWERS]
            case "two answers":
                messages += [SAYS, ANSWERS, asks(f"t{number}"), gets(f"t{number}")]
            case _:
                messages += [asks(f"t{number}"), gets(f"t{number}")]
    return messages


@given(conversations())
def test_rounds_cover_the_view_in_order_and_part_no_call_from_its_result(messages: list[Message]) -> None:
    rounds = split_rounds(messages, [1] * len(messages))
    assert rounds[0].start == 0
    assert rounds[-1].stop == len(messages)
    assert all(one.stop == other.start for one, other in pairwise(rounds))
    assert sum(item.tokens for item in rounds) == len(messages)
    for item in rounds:
        inside = messages[item.start : item.stop]
        called = {block.id for message in inside for block in message.blocks if isinstance(block, ToolUse)}
        got = {
            block.tool_use_id
            for message in inside
            for block in message.blocks
            if isinstance(block, ToolResult)
        }
        assert called == got
        assert inside[0].role != "system"


def test_a_round_is_an_answer_and_what_follows_it() -> None:
    messages = [SAYS, asks("a"), gets("a"), ANSWERS, SAYS, REMINDS]
    spans = [(item.start, item.stop) for item in split_rounds(messages, [5] * 6)]
    assert spans == [(0, 1), (1, 3), (3, 4), (4, 6)]


def rounds(*tokens: int) -> tuple[RoundSpan, ...]:
    return tuple(RoundSpan(at * 2, at * 2 + 2, size) for at, size in enumerate(tokens))


@pytest.mark.parametrize(
    ("sizes", "overshoot", "dropped"),
    [
        ((100, 100, 100, 100), 50, 1),
        ((100, 100, 100, 100), 100, 1),
        ((100, 100, 100, 100), 101, 2),
        ((100, 100, 100, 100), 10_000, 3),
        ((100,) * 10, None, 2),
        ((100,) * 11, None, 3),
        ((100, 100), None, 1),
        ((100,), None, 0),
        ((), 5, 0),
    ],
    ids=["less", "just", "more", "all but the last", "a fifth", "rounded up", "two", "one", "none"],
)
def test_the_oldest_rounds_that_cover_the_overshoot_are_dropped(
    sizes: tuple[int, ...], overshoot: int | None, dropped: int
) -> None:
    trim = plan_trim(rounds(*sizes), overshoot, SETTINGS)
    assert trim.rounds == dropped
    assert trim.tokens == sum(sizes[:dropped])
    assert trim.stop - trim.start == 2 * dropped


@given(st.lists(st.integers(0, 1_000), max_size=20), st.integers(0, 5_000))
def test_the_newest_rounds_that_fit_are_kept(sizes: list[int], budget: int) -> None:
    all_rounds = rounds(*sizes)
    start = choose_kept_start(all_rounds, budget, length=2 * len(sizes))
    kept = [item.tokens for item in all_rounds if item.start >= start]
    assert sum(kept) <= budget
    older = [item.tokens for item in all_rounds if item.start < start]
    assert not older or sum(kept) + older[-1] > budget, "one more would not have fitted"


def test_the_work_of_an_earlier_compaction_is_the_head() -> None:
    block = Message("assistant", (Compaction("All that was said."),))
    assert count_head_messages([block, SAYS, ANSWERS], [False, True, False]) == 2
    assert count_head_messages([SAYS, ANSWERS], [False, False]) == 0
    assert count_head_messages([SAYS], [True]) == 1


def test_a_place_is_moved_to_the_beginning_of_its_round() -> None:
    messages = [SAYS, asks("a"), gets("a"), ANSWERS]
    found = split_rounds(messages, [1] * 4)
    assert [find_round_start(found, at) for at in range(4)] == [0, 1, 1, 3]
