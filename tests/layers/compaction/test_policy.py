"""Which rung comes next, and what the breakers remember."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import WireError
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message
from sevenfold.layers.compaction.policy import (
    COMPACTION_STRATEGIES,
    MODEL_STRATEGIES,
    BreakerState,
    CompactionOutcome,
    CompactionStrategy,
    CompactionTrigger,
    CompactSettings,
    StrategyAttempt,
    StrategyFacts,
    StrategyFailure,
    choose_strategy,
)

SETTINGS = CompactSettings()
NO_NOTES = StrategyFacts(
    trigger="auto", notes_missing="none yet", has_structural=True, block_missing="not this model"
)
FAILURES: tuple[StrategyFailure, ...] = get_args(StrategyFailure)


def after(facts: StrategyFacts, *attempts: tuple[CompactionStrategy, StrategyFailure]) -> StrategyFacts:
    tried = tuple(StrategyAttempt(rung, failure) for rung, failure in attempts)
    calls = sum(attempt.strategy in MODEL_STRATEGIES for attempt in tried)
    return replace(facts, attempts=tried, failures_in_row=facts.failures_in_row + calls)


def strategy(facts: StrategyFacts) -> CompactionStrategy:
    return choose_strategy(facts, SETTINGS).strategy


def test_notes_come_first_then_the_providers_block_then_a_summary() -> None:
    facts = StrategyFacts(trigger="auto", has_structural=True)
    assert strategy(facts) == "notes"
    assert strategy(after(facts, ("notes", "too large"))) == "block"
    assert strategy(after(facts, ("notes", "too large"), ("block", "unusable"))) == "summary"


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        ([], "summary"),
        ([("summary", "refused")], "structural"),
        ([("summary", "unusable")], "structural"),
        ([("summary", "too large")], "structural"),
        ([("summary", "broken")], "summary"),
        ([("summary", "broken")] * 2, "summary"),
        ([("summary", "broken")] * 3, "structural"),
        ([("summary", "too long")], "trimmed"),
        ([("summary", "too long"), ("trimmed", "too long")], "trimmed"),
        ([("summary", "too long"), ("trimmed", "too long"), ("trimmed", "too long")], "structural"),
        ([("summary", "too long"), ("trimmed", "broken")], "trimmed"),
        ([("summary", "too long"), ("trimmed", "unusable")], "structural"),
        ([("structural", "too large")], "clip"),
        ([("clip", "too large")], "clip"),
    ],
)
def test_what_follows_a_failure(
    attempts: list[tuple[CompactionStrategy, StrategyFailure]], expected: CompactionStrategy
) -> None:
    assert strategy(after(NO_NOTES, *attempts)) == expected


def test_a_trimmed_summary_is_tried_a_number_of_times_however_many_failures_the_breaker_allows() -> None:
    patient = replace(SETTINGS, breaker_failures=10, trim_tries=3)
    tried: list[tuple[CompactionStrategy, StrategyFailure]] = [("summary", "too long")]
    for expected in ("trimmed", "trimmed", "structural"):
        assert choose_strategy(after(NO_NOTES, *tried), patient).strategy == expected
        tried.append(("trimmed", "too long"))


def test_a_view_that_does_not_fit_goes_to_the_trimmed_summary_at_once() -> None:
    step = choose_strategy(replace(NO_NOTES, fits_window=False), SETTINGS)
    assert step.strategy == "trimmed"
    assert [skip.strategy for skip in step.skipped] == ["notes", "block", "summary"]


def test_without_older_rounds_nothing_is_trimmed() -> None:
    assert strategy(replace(NO_NOTES, fits_window=False, can_trim=False)) == "structural"
    facts = after(NO_NOTES, ("summary", "too long"), ("trimmed", "too long"))
    assert strategy(replace(facts, can_trim=False)) == "structural"


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (replace(NO_NOTES, notes_missing="none yet"), "none yet"),
        (replace(NO_NOTES, notes_missing="", is_directed=True), "cannot follow an instruction"),
        (replace(NO_NOTES, notes_missing="", is_partial=True), "the whole session"),
    ],
    ids=["none", "directed", "partial"],
)
def test_notes_are_passed_over_with_a_reason(facts: StrategyFacts, reason: str) -> None:
    first = choose_strategy(facts, SETTINGS).skipped[0]
    assert first.strategy == "notes"
    assert reason in first.reason


def test_an_open_breaker_leaves_what_needs_no_model() -> None:
    step = choose_strategy(replace(NO_NOTES, failures_in_row=3), SETTINGS)
    assert step.strategy == "structural"
    assert "3 summaries in a row" in step.skipped[-1].reason
    assert strategy(replace(NO_NOTES, failures_in_row=3, notes_missing="")) == "notes"
    assert strategy(replace(NO_NOTES, failures_in_row=3, has_structural=False)) == "clip"


def test_by_hand_a_model_is_asked_though_the_breaker_is_open() -> None:
    facts = replace(NO_NOTES, trigger="manual", failures_in_row=7)
    assert strategy(facts) == "summary"
    broken: tuple[CompactionStrategy, StrategyFailure] = ("summary", "broken")
    assert strategy(after(facts, broken, broken, broken)) == "structural"


def test_without_a_provider_or_while_thrashing_no_model_is_asked() -> None:
    assert strategy(replace(NO_NOTES, has_model=False)) == "structural"
    assert strategy(replace(NO_NOTES, trigger="reactive", is_thrashing=True)) == "structural"
    assert strategy(replace(NO_NOTES, trigger="manual", is_thrashing=True)) == "summary"


@given(
    st.sampled_from(get_args(CompactionTrigger)),
    st.lists(st.sampled_from(FAILURES), min_size=20, max_size=20),
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_every_way_down_ends_at_the_clip_within_three_calls(
    trigger: CompactionTrigger,
    failures: list[StrategyFailure],
    earlier: int,
    block: bool,
    structural: bool,
    fits: bool,
) -> None:
    missing = "" if block else "not this model"
    facts = StrategyFacts(
        trigger=trigger,
        attempts=(),
        failures_in_row=earlier,
        has_structural=structural,
        block_missing=missing,
        fits_window=fits,
    )
    taken: list[CompactionStrategy] = []
    while not taken or taken[-1] != "clip":
        step = choose_strategy(facts, SETTINGS)
        assert len(taken) < 10
        taken.append(step.strategy)
        is_call = step.strategy in MODEL_STRATEGIES
        facts = replace(
            facts,
            attempts=(*facts.attempts, StrategyAttempt(step.strategy, failures[len(taken)])),
            failures_in_row=facts.failures_in_row + is_call,
        )
    calls = sum(item in MODEL_STRATEGIES for item in taken)
    assert calls <= (3 if trigger == "manual" else max(0, 3 - earlier))
    assert [COMPACTION_STRATEGIES.index(item) for item in taken] == sorted(
        COMPACTION_STRATEGIES.index(item) for item in taken
    )


def end(
    since: int | None, *, is_within: bool = True, trigger: CompactionTrigger = "auto"
) -> CompactionOutcome:
    return CompactionOutcome(trigger, is_within, 6, since)


def test_two_compactions_that_help_nothing_are_thrashing() -> None:
    state = BreakerState().with_outcome(end(None, is_within=False), SETTINGS)
    assert not state.is_thrashing(SETTINGS)
    assert state.with_outcome(end(50, is_within=False), SETTINGS).is_thrashing(SETTINGS)


def test_being_due_again_at_once_counts_as_no_help() -> None:
    state = BreakerState()
    for since in (None, 2, 0):
        state = state.with_outcome(end(since), SETTINGS)
    assert state.is_thrashing(SETTINGS)
    assert state.with_outcome(end(3), SETTINGS).futile_in_row == 0


def test_rounds_are_counted_in_the_view_itself() -> None:
    answer, said = Message("assistant", "Done."), Message("user", "Go on.")
    view = [said, answer, said, answer, said, answer]
    assert BreakerState().rounds_since(view) is None
    assert BreakerState(last_length=2).rounds_since(view) == 2
    assert BreakerState(last_length=6).rounds_since(view) == 0
    assert BreakerState(last_length=7).rounds_since(view) is None, "a shorter view is another one"


def test_by_hand_what_helps_ends_the_thrashing() -> None:
    state = BreakerState(futile_in_row=2, last_length=10)
    assert not state.with_outcome(end(1, trigger="manual"), SETTINGS).is_thrashing(SETTINGS)
    assert state.with_outcome(end(1, trigger="manual", is_within=False), SETTINGS).is_thrashing(SETTINGS)


def test_failures_are_counted_until_a_success() -> None:
    state = BreakerState().with_failure().with_failure()
    assert state.failures_in_row == 2
    assert state.with_success().failures_in_row == 0


@given(
    st.builds(
        BreakerState,
        failures_in_row=st.integers(0, 99),
        futile_in_row=st.integers(0, 99),
        last_length=st.none() | st.integers(0, 9999),
    )
)
def test_the_state_survives_its_json(state: BreakerState) -> None:
    assert read_fields(BreakerState, write_fields(state)) == state


@pytest.mark.parametrize("value", [-1, "3", True, 1.5])
def test_a_state_that_makes_no_sense_is_refused(value: int) -> None:
    with pytest.raises(WireError, match=r"failures_in_row is .*; expected a whole number"):
        read_fields(BreakerState, JsonObject({"failures_in_row": value}))


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        (
            {"is_partial": True},
            {
                "notes": "notes are about the whole session, not a part of it",
                "block": "a compaction block stands for everything before it, not for a part",
            },
        ),
        ({"is_directed": True}, {"notes": "notes that are written already cannot follow an instruction"}),
        (
            {"notes_missing": "none yet", "fits_window": False},
            {
                "notes": "none yet",
                "block": "the whole view does not fit the window",
                "summary": "the whole view does not fit the window",
            },
        ),
        (
            {"notes_missing": "none yet", "block_missing": "not this model", "has_model": False},
            {
                "notes": "none yet",
                "block": "no provider was given to write summaries",
                "summary": "no provider was given to write summaries",
                "trimmed": "no provider was given to write summaries",
            },
        ),
    ],
)
def test_each_strategy_that_is_skipped_has_a_reason(
    changes: dict[str, object], reasons: dict[CompactionStrategy, str]
) -> None:
    facts = replace(StrategyFacts(trigger="auto", has_structural=True), **changes)
    assert {skip.strategy: skip.reason for skip in choose_strategy(facts, SETTINGS).skipped} == reasons
