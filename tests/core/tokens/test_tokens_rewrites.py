"""A context that is rewritten: the bill stays the base, and only what changed is estimated."""

from __future__ import annotations

import pytest

from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUseId
from sevenfold.core.prices import CATALOG
from sevenfold.core.tokens import SourcedMessage, Tally
from sevenfold.core.usage import Usage

OLDER, NEWER = CATALOG.find("claude-opus-4-6"), CATALOG.find("claude-opus-5")
LONG = Message("user", (ToolResult(ToolUseId("t"), "a line of output\n" * 500),))
SHORT = Message("user", (ToolResult(ToolUseId("t"), "[cleared]"),))
SAID, REPLY = Message("user", "word " * 300), Message("assistant", "Done.")


def billed(prompt: int = 9_000) -> Tally:
    tally = Tally(OLDER)
    tally.set_frame("You are helpful.")
    tally.add(SAID)
    tally.add(LONG)
    tally.bill(Usage(fresh=prompt, output=10), REPLY)
    return tally


def test_a_message_that_is_swapped_changes_the_size_by_the_difference() -> None:
    tally, alone = billed(), Tally(OLDER)
    long, short = alone.add(LONG), alone.add(SHORT)
    assert tally.swap(LONG, SHORT) == pytest.approx(short)
    assert tally.count().tokens == pytest.approx(9_010 - tally.estimate_of(long - short), abs=2)
    assert not tally.count().is_wholly_estimated
    assert tally.swap(SHORT, LONG) == pytest.approx(long)
    assert tally.count().tokens == pytest.approx(9_010, abs=2)


def test_a_discount_takes_its_weight_off() -> None:
    tally = billed()
    weight = Tally(OLDER).add(LONG)
    tally.discount(weight)
    assert tally.count().tokens == pytest.approx(9_010 - tally.estimate_of(weight), abs=2)
    assert sum(tally.breakdown().tool_results.values()) == pytest.approx(0, abs=2)


def test_a_rewritten_context_is_billed_less_what_left_plus_what_came() -> None:
    tally, alone = billed(), Tally(OLDER)
    said, long, reply, short = (alone.add(message) for message in (SAID, LONG, REPLY, SHORT))
    weights = tally.rewrite([SourcedMessage(SAID, "attachment"), SHORT, REPLY])
    assert weights == pytest.approx([said, short, reply])
    assert tally.count().tokens == pytest.approx(9_010 - tally.estimate_of(long - short), abs=2)
    assert tally.breakdown().attachments > 0
    assert tally.rewrite([]) == []
    assert tally.count().tokens == pytest.approx(9_010 - tally.estimate_of(said + long + reply), abs=3)


def test_without_a_bill_a_rewritten_context_is_estimated_as_a_new_one() -> None:
    tally, fresh = Tally(OLDER), Tally(OLDER)
    tally.add(LONG)
    tally.rewrite([SAID, REPLY])
    for message in (SAID, REPLY):
        fresh.add(message)
    assert tally.count() == fresh.count()
    assert tally.count().is_wholly_estimated


def test_a_baseline_is_the_size_until_more_is_added() -> None:
    tally = Tally(OLDER)
    tally.add(LONG)
    tally.set_baseline(1_234)
    assert (tally.count().tokens, tally.count().is_wholly_estimated) == (1_234, False)
    tally.add(SAID)
    assert tally.count().tokens > 1_400


def test_another_model_counts_the_same_context_by_its_own_tokenizer() -> None:
    tally = billed(10_000)
    tally.switch_model(NEWER)
    assert tally.count().tokens == pytest.approx(13_013, abs=2)
    tally.switch_model(OLDER)
    assert tally.count().tokens == pytest.approx(10_010, abs=2)


def test_a_block_is_estimated_by_the_measure_of_the_messages() -> None:
    tally = Tally(NEWER)
    weight = tally.add(Message("user", (Text("word " * 300),)))
    assert tally.estimate_block(Text("word " * 300)) == pytest.approx(tally.estimate_of(weight), rel=0.05)
    assert tally.estimate_of(2 * weight) == pytest.approx(2 * tally.estimate_of(weight), abs=1)
    assert tally.estimate_block(Thinking("Hm.", None)) > 0
