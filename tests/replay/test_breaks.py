"""Cache breaks: found by what was read, explained by what stands between."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from sevenfold.core.usage import Usage
from sevenfold.replay.bills import CallRates
from sevenfold.replay.calls import MIN_LOST_TOKENS, BreakDetector, CacheBreak, group_breaks
from tests.replay.steps import MODEL, Calls

WARM = Usage(fresh=10, read=40_000, written_5m=9_990)
GROWN = Usage(fresh=10, read=49_990, written_5m=2_000)
LOST = Usage(fresh=10, read=15_000, written_5m=36_990)
RATES = CallRates(read=Decimal("0.0000002"), paid=Decimal("0.000005"))


def watch(
    *calls: tuple[Usage, float | None],
    model: str = MODEL,
    before_last: str = "",
    last_model: str | None = None,
) -> CacheBreak | None:
    """What the last of these calls shows; calls are usage and the second they started."""
    calls_made, watching, found = Calls(model), BreakDetector(), None
    for place, (usage, when) in enumerate(calls):
        is_last = place == len(calls) - 1
        if is_last and before_last in ("compaction", "clearing"):
            watching.note_cut(before_last)
        call = calls_made.call(usage, when=when, model=last_model if is_last else None)
        found = watching.check(call, usage, RATES)
    return found


def test_a_call_that_reads_what_the_last_one_left_is_no_break() -> None:
    assert watch((WARM, 0), (GROWN, 60)) is None


def test_the_first_call_breaks_nothing() -> None:
    assert watch((replace(WARM, read=0, written_5m=49_990), 0)) is None


def test_a_break_says_what_was_lost_and_what_it_cost_over_reading_it() -> None:
    found = watch((WARM, 0), (LOST, 60))
    assert found is not None
    assert found.lost_tokens == 49_990 - 15_000
    assert found.lost_usd == Decimal(34_990) * (RATES.paid - RATES.read)
    assert (found.prompt_tokens, found.read_tokens) == (52_000, 15_000)
    assert found.gap == timedelta(seconds=60)


def test_less_than_a_thousand_tokens_are_no_break() -> None:
    def after(lost: int) -> CacheBreak | None:
        return watch((WARM, 0), (Usage(fresh=10, read=49_990 - lost, written_5m=lost + 500), 60))

    assert after(MIN_LOST_TOKENS - 1) is None
    assert after(MIN_LOST_TOKENS) is not None


def test_a_prompt_that_shrank_can_lose_no_more_than_it_has() -> None:
    found = watch((WARM, 0), (Usage(fresh=10, read=5_000, written_5m=7_000), 60))
    assert found is not None
    assert found.lost_tokens == 7_010


HOUR = replace(WARM, written_5m=0, written_1h=9_990)


@pytest.mark.parametrize(
    ("first", "seconds", "cause"),
    [
        (WARM, 299, "unexplained"),
        (WARM, 301, "idle"),
        (HOUR, 301, "unexplained"),
        (HOUR, 3_601, "idle"),
        (replace(HOUR, written_5m=1), 301, "idle"),
    ],
    ids=["5m warm", "5m cold", "1h warm", "1h cold", "mixed: the short one goes first"],
)
def test_idle_is_a_gap_longer_than_the_entry_was_written_for(
    first: Usage, seconds: float, cause: str
) -> None:
    found = watch((first, 0), (LOST, seconds))
    assert found is not None
    assert found.cause == cause


def test_a_call_that_only_reads_keeps_the_life_of_the_entry() -> None:
    found = watch((HOUR, 0), (Usage(fresh=5, read=49_990), 1_000), (LOST, 3_000))
    assert found is not None
    assert (found.cause, found.life) == ("unexplained", timedelta(hours=1))


@pytest.mark.parametrize(
    ("cut", "seconds", "cause"),
    [
        ("compaction", 60, "compaction"),
        ("compaction", 4_000, "compaction"),
        ("clearing", 60, "clearing"),
        ("clearing", 4_000, "idle"),
    ],
)
def test_what_happened_in_between_explains_a_break(cut: str, seconds: float, cause: str) -> None:
    found = watch((WARM, 0), (LOST, seconds), before_last=cut)
    assert found is not None
    assert found.cause == cause


def test_a_cut_explains_only_the_call_after_it() -> None:
    calls, watching = Calls(), BreakDetector()
    watching.check(calls.call(WARM), WARM, RATES)
    watching.note_cut("compaction")
    watching.check(calls.call(GROWN, when=10), GROWN, RATES)
    found = watching.check(calls.call(LOST, when=20), LOST, RATES)
    assert found is not None
    assert found.cause == "unexplained"


def test_what_the_provider_cleared_by_itself_explains_a_break_too() -> None:
    calls, watching = Calls(), BreakDetector()
    watching.check(calls.call(WARM), WARM, RATES)
    found = watching.check(calls.call(LOST, when=10, cleared=20_000), LOST, RATES)
    assert found is not None
    assert found.cause == "clearing"


def test_another_model_has_a_cache_of_its_own() -> None:
    found = watch((WARM, 0), (LOST, 10), last_model="claude-haiku-5-5")
    assert found is not None
    assert found.cause == "model switch"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4-5", "claude-opus-4-5-20251101"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("anthropic/claude-opus-4.5", "claude-opus-4-5"),
    ],
)
def test_another_spelling_of_a_model_is_no_switch(first: str, second: str) -> None:
    found = watch((WARM, 0), (LOST, 10), model=first, last_model=second)
    assert found is not None
    assert (found.cause, found.model) == ("unexplained", second)
    gone = watch((WARM, 0), (LOST, 400), model=first, last_model=second)
    assert gone is not None
    assert gone.cause == "idle"


def test_models_that_no_table_knows_are_told_apart_by_their_names() -> None:
    found = watch((WARM, 0), (LOST, 10), model="one-model", last_model="other-model")
    assert found is not None
    assert found.cause == "model switch"


def test_coming_back_to_a_model_reads_what_it_had() -> None:
    calls, watching = Calls(), BreakDetector()
    watching.check(calls.call(WARM), WARM, RATES)
    cold = Usage(fresh=10, written_5m=51_000)
    assert watching.check(calls.call(cold, when=10, model="claude-haiku-5-5"), cold, RATES) is not None
    assert watching.check(calls.call(GROWN, when=20), GROWN, RATES) is None


def test_without_times_nothing_is_called_idle() -> None:
    found = watch((WARM, None), (LOST, None))
    assert found is not None
    assert (found.cause, found.gap) == ("unexplained", None)


def test_without_a_price_a_break_has_tokens_and_no_dollars() -> None:
    calls, watching = Calls("gpt-5.5", "openai"), BreakDetector()
    first, second = Usage(fresh=50_000), Usage(fresh=41_000, read=10_000)
    watching.check(calls.call(first), first, None)
    found = watching.check(calls.call(second, when=400), second, None)
    assert found is not None
    assert (found.lost_tokens, found.lost_usd, found.cause) == (40_000, None, "idle")


@pytest.mark.parametrize(
    ("model", "cause"), [("gpt-5.5", "idle"), ("gpt-5.6", "unexplained"), ("gpt-6.0", "unexplained")]
)
def test_openais_newer_models_keep_entries_for_half_an_hour(model: str, cause: str) -> None:
    calls, watching = Calls(model, "openai"), BreakDetector()
    first, second = Usage(fresh=50_000), Usage(fresh=50_500)
    watching.check(calls.call(first), first, None)
    found = watching.check(calls.call(second, when=900), second, None)
    assert found is not None
    assert found.cause == cause


def test_an_uncached_conversation_has_no_breaks() -> None:
    bare = Usage(fresh=50_000)
    assert watch((bare, 0), (bare, 10), (bare, 4_000)) is None


def test_groups_add_up_and_the_costliest_comes_first() -> None:
    one = watch((WARM, 0), (LOST, 60))
    two = watch((WARM, 0), (LOST, 600))
    assert one is not None
    assert two is not None
    groups = group_breaks([one, two, two, replace(one, lost_usd=None)])
    assert [(group.cause, group.count, group.lost_tokens) for group in groups] == [
        ("idle", 2, 69_980),
        ("unexplained", 2, 69_980),
    ]
    assert groups[0].lost_usd == 2 * Decimal(34_990) * (RATES.paid - RATES.read)
