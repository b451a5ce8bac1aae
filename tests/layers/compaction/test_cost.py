"""Warm or cold, here or on another model: the prices decide."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUseId
from sevenfold.core.models import make_unknown_model
from sevenfold.core.prices import CATALOG
from sevenfold.layers.compaction.trim import SummaryPathFacts, choose_summary_path, count_uncached_tokens

OPUS, HAIKU, SMALL = (
    CATALOG.find(name) for name in ("claude-opus-5-5", "claude-haiku-5-5", "claude-haiku-4-5")
)
FACTS = SummaryPathFacts(model=OPUS, is_warm=True, whole_tokens=160_000, stripped_tokens=150_000)


@pytest.mark.parametrize(
    ("facts", "is_warm", "model"),
    [
        (FACTS, True, OPUS),
        (replace(FACTS, is_warm=False), False, OPUS),
        (replace(FACTS, is_warm=False, stripped_tokens=160_000), True, OPUS),
        (replace(FACTS, stripped_tokens=5_000), False, OPUS),
        (replace(FACTS, others=(HAIKU,), whole_tokens=300_000, stripped_tokens=290_000), True, OPUS),
        (replace(FACTS, others=(HAIKU,), stripped_tokens=90_000), False, HAIKU),
        (replace(FACTS, is_warm=False, others=(HAIKU,)), False, HAIKU),
    ],
    ids=[
        "a warm prefix is read for a twentieth",
        "cold, less is sent",
        "a tie goes to the prefix",
        "nearly everything can be stripped",
        "the cheap model is dear above its tier",
        "the cheap model below its tier",
        "cold, the cheap model",
    ],
)
def test_the_cheapest_way_is_taken(facts: SummaryPathFacts, is_warm: bool, model: object) -> None:
    choice = choose_summary_path(facts)
    assert (choice.is_warm, choice.model) == (is_warm, model)


def test_the_price_is_what_the_table_says() -> None:
    # 160,000 read at 0.20 and 4,000 written at 20 dollars a million.
    assert choose_summary_path(FACTS).usd == Decimal("0.112")


def test_a_model_whose_window_is_too_small_is_not_asked() -> None:
    facts = replace(FACTS, is_warm=False, stripped_tokens=400_000, whole_tokens=500_000, others=(SMALL,))
    assert choose_summary_path(facts).model is OPUS


def test_without_a_price_the_state_of_the_cache_decides() -> None:
    unknown = make_unknown_model("mine")
    facts = SummaryPathFacts(model=unknown, is_warm=True, whole_tokens=100_000, stripped_tokens=90_000)
    assert choose_summary_path(facts).is_warm
    assert not choose_summary_path(replace(facts, is_warm=False)).is_warm
    assert choose_summary_path(facts).usd is None


def talk(*parts: str) -> list[Message]:
    """One message each: `say` is a person's, `think` an answer with a thought, `result` a tool's."""
    made = {
        "say": Message("user", "Go on."),
        "think": Message("assistant", (Thinking("Hm."), Text("Yes."))),
        "result": Message("user", (ToolResult(ToolUseId("t"), "done"),)),
    }
    return [made[part] for part in parts]


@pytest.mark.parametrize(
    ("parts", "unread"),
    [
        (("say", "think", "result", "think"), 3),
        (("say", "think", "say", "think", "result"), 2),
        (("say", "think", "say"), 0),
        ((), 0),
    ],
)
def test_where_earlier_thinking_is_left_out_a_turn_is_read_up_to_its_first_thought(
    parts: tuple[str, ...], unread: int
) -> None:
    messages = talk(*parts)
    counts = [1] * len(messages)
    assert SMALL.drops_thinking
    assert count_uncached_tokens(messages, counts, SMALL, len(messages)) == unread
    assert count_uncached_tokens(messages, counts, OPUS, len(messages)) == 0


def test_what_no_request_has_held_is_paid_anew() -> None:
    messages = talk("say", "think", "result", "say")
    assert count_uncached_tokens(messages, [10] * len(messages), OPUS, len(messages) - 1) == 10


def test_what_a_warm_cache_does_not_hold_is_paid_in_full() -> None:
    facts = replace(FACTS, model=SMALL)
    assert choose_summary_path(facts).is_warm
    assert not choose_summary_path(replace(facts, unread_tokens=155_000)).is_warm
    all_read, none_read = choose_summary_path(facts), choose_summary_path(replace(facts, is_warm=False))
    assert all_read.usd is not None
    assert none_read.usd is not None
    assert all_read.usd < none_read.usd
