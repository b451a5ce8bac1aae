from __future__ import annotations

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Block,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUseId,
)
from sevenfold.core.prices import Catalog
from sevenfold.core.tokens import (
    PLAIN_ESTIMATOR,
    Calibration,
    ContextSize,
    Tally,
    TokenMix,
    measure_context,
)
from sevenfold.core.usage import Iteration, Usage

OPUS = Catalog().find("claude-opus-4-6")
SONNET = Catalog().find("claude-sonnet-4-5-20250929")
NEWER = Catalog().find("claude-opus-5-5")


def plain(model: str = "claude-opus-4-6") -> Tally:
    return Tally(Catalog().find(model), estimator=PLAIN_ESTIMATOR)


def human(size_tokens: int) -> Message:
    return Message("user", "x" * 4 * size_tokens)


def reply(size_tokens: int) -> Message:
    return Message("assistant", "y" * 4 * size_tokens)


@pytest.mark.parametrize(
    ("billed", "added", "expected"),
    [
        (None, 0.0, ContextSize(0, 0, is_wholly_estimated=True)),
        (None, 300.0, ContextSize(400, 400, is_wholly_estimated=True)),
        (None, 0.1, ContextSize(1, 1, is_wholly_estimated=True)),
        (None, -5.0, ContextSize(0, 0, is_wholly_estimated=True)),
        (1_000, 300.4, ContextSize(1_300, 300, is_wholly_estimated=False)),
        (1_000, -200.0, ContextSize(800, -200, is_wholly_estimated=False)),
        (100, -200.0, ContextSize(0, -200, is_wholly_estimated=False)),
    ],
)
def test_the_canonical_count_is_the_last_bill_and_an_estimate_of_the_rest(
    billed: int | None, added: float, expected: ContextSize
) -> None:
    assert measure_context(billed, added) == expected


def test_before_any_response_all_is_estimated_with_a_margin() -> None:
    tally = plain()
    tally.set_frame("s" * 1_200)
    tally.add(human(300))
    assert tally.count() == ContextSize(800, 800, is_wholly_estimated=True)


def test_after_a_response_its_bill_stands_and_only_the_rest_is_estimated() -> None:
    tally = plain()
    tally.set_frame("s" * 1_200)
    tally.add(human(300))
    tally.bill(Usage(fresh=500, read=4_000, written_5m=300, written_1h=200, output=70), reply(999))
    assert tally.count() == ContextSize(5_070, 0, is_wholly_estimated=False)
    tally.add(human(30))
    assert tally.count() == ContextSize(5_100, 30, is_wholly_estimated=False)


def test_an_output_count_that_is_not_to_be_trusted_is_estimated_from_the_reply() -> None:
    tally = plain()
    tally.bill(Usage(fresh=5_000, output=1), reply(60), is_output_known=False)
    assert tally.count() == ContextSize(5_060, 60, is_wholly_estimated=False)


def test_with_compaction_on_the_server_the_last_message_run_is_the_context() -> None:
    tally = plain()
    runs = (Iteration(fresh=180_000, output=9_000, kind="compaction"), Iteration(fresh=23_000, output=1_000))
    tally.bill(Usage(fresh=23_000, output=1_000, iterations=runs), reply(10))
    assert tally.count() == ContextSize(24_000, 0, is_wholly_estimated=False)


def test_a_response_that_only_compacted_says_nothing_of_the_context() -> None:
    tally = plain()
    tally.bill(Usage(fresh=900), reply(0))
    tally.bill(Usage(iterations=(Iteration(fresh=900, output=50, kind="compaction"),)), reply(50))
    assert tally.count() == ContextSize(950, 50, is_wholly_estimated=False)


def test_a_cut_starts_over_with_what_is_left() -> None:
    tally = plain()
    tally.add(human(900))
    tally.bill(Usage(fresh=900), reply(90))
    tally.cut([human(30)])
    assert tally.count() == ContextSize(40, 40, is_wholly_estimated=True)


def test_a_frame_that_changes_after_a_bill_is_counted_by_what_it_changed() -> None:
    tally = plain()
    tally.bill(Usage(fresh=1_000, output=10), reply(10))
    tally.set_frame("s" * 4_000)
    assert tally.count() == ContextSize(2_010, 1_000, is_wholly_estimated=False)
    tally.set_frame("s" * 400)
    assert tally.count() == ContextSize(1_110, 100, is_wholly_estimated=False)
    tally.bill(Usage(fresh=1_200), reply(0))
    tally.set_frame("")
    assert tally.count() == ContextSize(1_100, -100, is_wholly_estimated=False)


def test_the_newer_tokenizer_counts_a_third_more_and_the_plain_rule_does_not() -> None:
    message = Message("user", "Some words of a person, as they come. " * 50)

    def added(tally: Tally) -> int:
        tally.add(message)
        return tally.count().tokens

    assert added(Tally(NEWER)) == pytest.approx(1.3 * added(Tally(OPUS)), rel=0.01)
    assert added(plain("claude-opus-5-5")) == added(plain("claude-opus-4-6"))


def test_switching_to_another_tokenizer_counts_the_same_context_anew() -> None:
    tally = Tally(OPUS)
    tally.bill(Usage(fresh=10_000), Message("assistant", ()))
    tally.switch_model(NEWER)
    assert tally.count().tokens == 13_000


THOUGHT = Message("assistant", (Thinking("t" * 400), Text("y" * 40)))


@pytest.mark.parametrize(
    ("model", "content", "estimated"),
    [
        ("claude-sonnet-4-5", "x" * 40, 10 + 10),
        ("claude-sonnet-4-5", (ToolResult(ToolUseId("t"), "x" * 40), Text("x" * 40)), 10 + 20),
        ("claude-sonnet-4-5", (ToolResult(ToolUseId("t"), "x" * 40),), 110 + 10),
        ("claude-opus-4-6", "x" * 40, 110 + 10),
    ],
    ids=["a person speaks", "a person interrupts", "a tool answers", "a model that keeps thinking"],
)
def test_some_models_drop_earlier_thinking_when_a_person_speaks(
    model: str, content: str | tuple[Block, ...], estimated: int
) -> None:
    tally = plain(model)
    tally.bill(Usage(fresh=5_000), THOUGHT, is_output_known=False)
    tally.add(Message("user", content))
    assert tally.count().estimated == estimated


def test_thinking_that_was_billed_long_ago_leaves_all_at_once_and_only_once() -> None:
    tally = plain("claude-sonnet-4-5")
    for _ in range(3):
        tally.bill(Usage(fresh=5_000), THOUGHT)
    tally.add(human(10))
    assert tally.count() == ContextSize(4_710, -290, is_wholly_estimated=False)
    tally.add(human(10))
    assert tally.count() == ContextSize(4_720, -280, is_wholly_estimated=False)


def test_bills_teach_the_calibrated_estimator_and_never_the_plain_one() -> None:
    learning, fixed = Tally(OPUS), plain()
    for tally in (learning, fixed):
        prompt = 20_000
        for _ in range(30):
            tally.bill(Usage(fresh=prompt), Message("assistant", "Well then, that is that. " * 40))
            tally.add(Message("user", "And a person says something long in return. " * 40))
            prompt += 800
    assert learning.calibration.factors.told > 1.4
    assert fixed.calibration.factors == TokenMix(1, 1, 1, 1)


def test_a_resumed_session_goes_on_with_what_it_had_learnt() -> None:
    learnt = Calibration(TokenMix(2.0, 2.0, 2.0, 2.0))
    first, resumed = Tally(OPUS), Tally(OPUS, calibration=learnt)
    for tally in (first, resumed):
        tally.add(human(1_000))
    assert resumed.count().tokens == pytest.approx(first.count().tokens * 2 / 1.02, rel=0.01)


def test_the_plain_rule_stays_plain_whatever_was_learnt() -> None:
    tally = Tally(OPUS, estimator=PLAIN_ESTIMATOR, calibration=Calibration(TokenMix(2.0, 2.0, 2.0, 2.0)))
    tally.add(human(300))
    assert tally.count().tokens == 400


def test_the_first_bill_and_the_one_after_a_cut_teach_nothing() -> None:
    tally = Tally(OPUS)
    tally.add(human(10))
    tally.bill(Usage(fresh=40_000), reply(10))
    assert tally.calibration == Calibration()
    tally.cut([human(10)])
    tally.bill(Usage(fresh=9_000), reply(10))
    assert tally.calibration == Calibration()


def test_an_unknown_model_is_counted_too() -> None:
    tally = Tally(Catalog().find("someone-elses-model"))
    tally.add(human(100))
    assert tally.count().tokens > 0


def test_a_count_goes_on_from_its_state_and_from_nothing_that_cannot_be_read() -> None:
    first, other = Tally(OPUS), Tally(OPUS)
    for tally in (first, other):
        tally.add(human(100))
    first.bill(Usage(fresh=3_000, output=40), reply(40))
    other.add(reply(40))
    first.add(human(70))
    other.add(human(70))
    state = first.describe_state()
    for damage in ({"billed": "x"}, {"rows": None}, {"rows": (1, 2)}):
        assert not other.restore_state(JsonObject({**state, **damage}))
    assert other.count().is_wholly_estimated
    assert other.restore_state(state)
    assert (other.count(), other.calibration) == (first.count(), first.calibration)
