"""Layer 2: which results leave the view, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.layers.microcompact.facts import PlacedResult
from sevenfold.layers.microcompact.policy import (
    CLEARING_WEIGHTS,
    FULL_SCAN_ROUNDS,
    HALF_AGE,
    MAX_SCANNED_RESULTS,
    CachePrices,
    ClearableResults,
    ClearingFacts,
    ClearingLedger,
    ClearingPlan,
    ClearingPolicy,
    MicrocompactSettings,
    PriceRule,
    choose_by_price,
    choose_clearing,
    choose_prefix_by_price,
    count_rewrite_tokens,
    estimate_chances,
)
from tests.layers.microcompact.clearings import FRAME_TOKENS, called, logs, moment, stock

POLICIES: tuple[ClearingPolicy, ...] = ("balanced", "thrift", "fixed", "ski", "keep")
ECONOMIC: tuple[ClearingPolicy, ...] = ("balanced", "thrift")
BALANCED, THRIFT = MicrocompactSettings(), MicrocompactSettings(policy="thrift")
PAUSE = timedelta(minutes=6)


def choose(
    shelf: ClearableResults, settings: MicrocompactSettings = BALANCED, *, facts: ClearingFacts | None = None
) -> ClearingPlan | None:
    return choose_clearing(facts or moment(shelf), shelf, spent(), settings)


def spent(won: float = 0.0) -> ClearingLedger:
    """The account of a session that has gone on for a while."""
    stakes = ClearingLedger()
    stakes.kept_cost, stakes.net_saved = 400_000.0, won
    return stakes


def chosen(shelf: ClearableResults, settings: MicrocompactSettings, facts: ClearingFacts) -> list[str]:
    found = choose(shelf, settings, facts=facts)
    return list(found.ids) if found else []


@pytest.mark.parametrize("policy", ECONOMIC)
def test_a_cold_cache_makes_clearing_free(policy: ClearingPolicy) -> None:
    shelf = stock(*logs(8, 3_000))
    found = choose(shelf, MicrocompactSettings(policy=policy), facts=moment(shelf, pause=PAUSE))
    assert found is not None
    assert list(found.ids) == [f"use {number}" for number in range(6)]
    assert (found.rewrite_tokens, found.by) == (0, policy)
    assert "cold" in found.reason


@pytest.mark.parametrize("policy", ECONOMIC)
def test_a_warm_cache_is_left_alone_while_a_rewrite_would_not_pay_back(policy: ClearingPolicy) -> None:
    # The large log comes after much that would have to be written again.
    shelf = stock(called("Bash", 0, 2_000, command="make"), *logs(6, 20)[1:], said_tokens=4_000)
    assert choose(shelf, MicrocompactSettings(policy=policy)) is None


@pytest.mark.parametrize("policy", ECONOMIC)
def test_a_warm_cache_is_cut_once_carrying_stale_results_costs_more(policy: ClearingPolicy) -> None:
    shelf = stock(*logs(20, 3_000))
    found = choose(shelf, MicrocompactSettings(policy=policy))
    assert found is not None
    assert found.saved_tokens > 40_000
    assert found.rewrite_tokens < 20_000
    assert f"{found.saved_tokens:,}" in found.reason
    assert f"{found.rewrite_tokens:,}" in found.reason


def test_what_is_cheap_to_read_is_left_alone_for_longer() -> None:
    shelf = stock(*logs(9, 1_200), said_tokens=400)
    dear = moment(shelf, round_=40)
    cheap = moment(shelf, round_=40, prices=CachePrices(0.025, 2.0))
    assert choose(shelf, THRIFT, facts=dear) is not None
    assert choose(shelf, THRIFT, facts=cheap) is None


def test_a_young_session_is_not_expected_to_last() -> None:
    shelf = stock(*logs(7, 2_500), said_tokens=700)
    assert choose(shelf, THRIFT, facts=moment(shelf, round_=30)) is not None
    assert choose(shelf, THRIFT, facts=moment(shelf)) is None


def test_balanced_keeps_small_results_that_thrift_clears() -> None:
    shelf = stock(*logs(8, 400))
    cold = moment(shelf, pause=PAUSE, view_tokens=100_000)
    assert chosen(shelf, THRIFT, cold) == [f"use {number}" for number in range(6)]
    assert chosen(shelf, BALANCED, cold) == []


def test_chances_grow_with_the_root_of_the_size_and_fall_with_age() -> None:
    small = called("Read", 1, 1_000, file_path="/src/a.py")
    large = called("Read", 2, 4_000, file_path="/src/b.py")
    new, old = (estimate_chances(small, age, is_superseded=False) for age in (0, int(HALF_AGE)))
    assert (old.used, old.quoted) == (new.used / 2, new.quoted / 2)
    assert estimate_chances(large, 0, is_superseded=False).used == 2 * new.used
    assert estimate_chances(small, 0, is_superseded=True).quoted < new.quoted
    huge = called("Read", 3, 10_000_000, file_path="/src/c.py")
    assert estimate_chances(huge, 0, is_superseded=False).used == 1.0


@pytest.mark.parametrize(
    ("command", "is_file"),
    [("cat src/a.py", True), ("sed -n 1,80p src/a.py | head", True), ("make", False), ("rg name", False)],
)
def test_a_file_that_a_command_shows_is_as_likely_to_be_quoted_as_any_other(
    command: str, is_file: bool
) -> None:
    shown = estimate_chances(called("Bash", 1, 900, command=command), 3, is_superseded=False)
    read = estimate_chances(called("Read", 1, 900, file_path="src/a.py"), 3, is_superseded=False)
    assert (shown.quoted == read.quoted) == is_file
    assert shown.used == read.used


def in_turns(*sizes: int) -> ClearableResults:
    """A shelf with a turn of four results for each of these sizes."""
    shelf, place, round_ = ClearableResults(), FRAME_TOKENS, 0
    for turn, tokens in enumerate(sizes):
        shelf.begin_turn()
        for number in range(4):
            round_ += 1
            result = called("Bash", 4 * turn + number, tokens, command=f"make {turn} {number}")
            shelf.add(result, round_=round_, place=place, anchor=place)
            place += tokens
    return shelf


def test_balanced_keeps_this_turn_and_the_one_before_while_the_cache_is_warm_and_the_view_small() -> None:
    shelf = in_turns(4_000, 2_400, 50)
    recent = {item.result.id for item in shelf.live if item.turn >= 2}
    facts = moment(shelf, round_=40, view_tokens=68_000)
    rich = spent(won=1_000_000.0)

    def gone(settings: MicrocompactSettings, facts: ClearingFacts) -> set[str]:
        found = choose_clearing(facts, shelf, rich, settings)
        return set(found.ids) if found else set()

    assert gone(BALANCED, facts)
    assert recent.isdisjoint(gone(BALANCED, facts))
    assert not recent.isdisjoint(gone(THRIFT, facts))
    assert not recent.isdisjoint(gone(BALANCED, moment(shelf, pause=PAUSE, view_tokens=68_000)))
    assert not recent.isdisjoint(gone(replace(BALANCED, recent_turn_tokens=60_000), facts))
    small_window = moment(shelf, round_=40, view_tokens=68_000, warning_tokens=60_000)
    assert not recent.isdisjoint(gone(BALANCED, small_window))
    less = gone(replace(BALANCED, recent_result_tokens=5_100), facts)
    newest = [item.result.id for item in shelf.live if item.turn >= 2][2:]
    assert not recent.isdisjoint(less), "of a long turn, what is older goes by price"
    assert less.isdisjoint(newest)


def test_a_file_that_was_read_again_goes_before_one_that_was_not() -> None:
    reads = [called("Read", number, 750, file_path=f"/src/{number}.py") for number in range(2)]
    again = called("Read", 2, 700, file_path="/src/0.py", offset=3)
    shelf = stock(*reads, again, *logs(9, 90)[3:])
    found = chosen(shelf, BALANCED, moment(shelf, pause=PAUSE, view_tokens=70_000))
    assert "use 0" in found
    assert "use 1" not in found


@pytest.mark.parametrize("policy", ECONOMIC)
def test_what_was_won_may_be_risked(policy: ClearingPolicy) -> None:
    rich, poor = spent(won=100_000.0), spent()
    settings = MicrocompactSettings(policy=policy)
    poor_cuts, rich_cuts = list[int](), list[int]()
    for said_tokens in range(0, 4_000, 50):
        shelf = stock(*logs(25, 2_000), said_tokens=said_tokens)
        facts = moment(shelf, round_=40)
        poor_cuts += [said_tokens] if choose_clearing(facts, shelf, poor, settings) else []
        rich_cuts += [said_tokens] if choose_clearing(facts, shelf, rich, settings) else []
    assert set(poor_cuts) < set(rich_cuts)


def test_what_nothing_pays_for_must_pay_back_as_often_as_the_policy_is_cautious() -> None:
    cuts = 0
    for said_tokens in range(0, 4_000, 100):
        shelf = stock(*logs(12, 4_000), said_tokens=said_tokens)
        facts = moment(shelf, round_=40)
        found = choose_clearing(facts, shelf, spent(), THRIFT)
        if found is not None:
            cuts += 1
            cost = (facts.prices.write - facts.prices.read) * found.rewrite_tokens
            most = facts.prices.read * found.saved_tokens * (THRIFT.rounds_ahead_5m + 1)
            assert CLEARING_WEIGHTS["thrift"].caution * cost <= most
    assert 0 < cuts < 40


def test_what_is_no_longer_in_the_cache_behind_a_cut_is_written_again() -> None:
    shelf = stock(*logs(12, 4_000))
    facts = moment(shelf, round_=40)
    first = shelf.live[6]
    alive = count_rewrite_tokens(facts, 0, first)
    assert alive == facts.cached_tokens - first.anchor
    dead = replace(facts, live_tokens=first.anchor + 1, marked_tokens=FRAME_TOKENS)
    assert count_rewrite_tokens(dead, 0, first) == facts.cached_tokens - FRAME_TOKENS


@pytest.mark.parametrize("policy", POLICIES)
def test_a_result_that_no_request_has_shown_is_never_cleared(policy: ClearingPolicy) -> None:
    shelf = ClearableResults()
    for number, result in enumerate(logs(9, 9_000)):
        shelf.add(result, round_=7, place=40_000 + 9_000 * number, anchor=40_000)
    settings = MicrocompactSettings(policy=policy, by_time=True)
    for pause in (timedelta(), PAUSE, timedelta(hours=3)):
        facts = moment(shelf, pause=pause, view_tokens=190_000)
        assert choose(shelf, settings, facts=facts) is None


def test_keep_and_the_switch_clear_nothing() -> None:
    shelf = stock(*logs(40, 4_000))
    facts = moment(shelf, pause=timedelta(hours=3), view_tokens=190_000)
    assert choose(shelf, MicrocompactSettings(policy="keep", by_time=True), facts=facts) is None
    assert choose(shelf, MicrocompactSettings(enabled=False, by_time=True), facts=facts) is None
    assert choose(ClearableResults(), BALANCED, facts=facts) is None


def test_after_an_hour_all_but_the_last_five_go_and_leave_a_bare_marker() -> None:
    shelf = stock(*logs(9, 500))
    fixed = MicrocompactSettings(policy="fixed")
    assert choose(shelf, fixed, facts=moment(shelf, pause=timedelta(minutes=60))) is None
    found = choose(shelf, fixed, facts=moment(shelf, pause=timedelta(minutes=61)))
    assert found is not None
    assert list(found.ids) == [f"use {number}" for number in range(4)]
    assert (found.by, found.is_bare, found.rewrite_tokens) == ("idle", True, 0)
    assert "61 minutes" in found.reason


def test_clearing_by_time_has_a_switch_of_its_own() -> None:
    shelf = stock(*logs(9, 60))
    later = moment(shelf, pause=timedelta(hours=2), view_tokens=100_000)
    assert choose(shelf, BALANCED, facts=later) is None, "too small to be worth it"
    found = choose(shelf, MicrocompactSettings(by_time=True), facts=later)
    assert found is not None
    assert found.by == "idle"


@pytest.mark.parametrize(
    ("results", "tokens", "view_tokens", "is_due"),
    [
        (14, 3_000, 160_001, True),
        (14, 3_000, 160_000, False),
        (13, 3_000, 160_001, False),
        (5, 8_000, 160_001, False),
        (6, 8_000, 160_001, True),
    ],
    ids=["over both limits", "at the warning", "too few tokens", "too little to save", "just enough"],
)
def test_pressure_clears_much_at_once_or_nothing(
    results: int, tokens: int, view_tokens: int, is_due: bool
) -> None:
    shelf = stock(*logs(results, tokens))
    found = choose(shelf, MicrocompactSettings(policy="fixed"), facts=moment(shelf, view_tokens=view_tokens))
    assert (found is not None) == is_due
    if found is not None:
        assert len(found.ids) == results - 3
        assert (found.by, found.is_bare) == ("pressure", False)


def test_pressure_helps_where_price_alone_would_wait() -> None:
    shelf = stock(*logs(20, 3_000))
    facts = moment(shelf, view_tokens=170_000, prices=CachePrices(0.001, 2.0))
    found = choose(shelf, BALANCED, facts=facts)
    assert found is not None
    assert found.by == "pressure"
    assert choose(shelf, MicrocompactSettings(by_pressure=False), facts=facts) is None


def test_ski_clears_when_the_reads_paid_equal_the_rewrite() -> None:
    shelf = stock(*logs(12, 1_000))
    ski = MicrocompactSettings(policy="ski")
    rounds = [number for number in range(12, 60) if choose(shelf, ski, facts=moment(shelf, round_=number))]
    assert rounds, "it never cleared"
    first = moment(shelf, round_=rounds[0])
    stale = shelf.find_stale(5, rounds[0])
    saved = sum(item.result.saved_tokens for item in stale)
    paid = sum(item.result.saved_tokens * shelf.count_stale_rounds(item, 5, rounds[0]) for item in stale)
    rewrite = 1.15 * (first.cached_tokens - saved - stale[-1].anchor)
    assert 0.1 * paid >= rewrite > 0.1 * (paid - saved)


def test_a_clock_that_was_set_back_is_no_reason_to_clear() -> None:
    shelf = stock(*logs(8, 3_000))
    assert not moment(shelf, pause=timedelta(hours=-3)).is_cold


shelves = st.lists(
    st.tuples(st.sampled_from(["Bash", "Read", "Edit", "Grep", "Glob", "Write"]), st.integers(1, 20_000)),
    min_size=1,
    max_size=40,
)


@given(
    shelves,
    st.sampled_from(POLICIES),
    st.sampled_from([0.1, 0.05, 0.025]),
    st.sampled_from([timedelta(seconds=5), PAUSE, timedelta(hours=2)]),
    st.integers(0, 60),
    st.integers(0, 200_000),
)
def test_every_choice_is_allowed_and_says_what_it_saves(
    made: list[tuple[str, int]],
    policy: ClearingPolicy,
    read: float,
    pause: timedelta,
    round_: int,
    view_tokens: int,
) -> None:
    results = [called(tool, at, tokens, file_path=f"/{at % 5}") for at, (tool, tokens) in enumerate(made)]
    shelf = stock(*results, called("Bash", 99, 100, command="last"))
    settings = MicrocompactSettings(policy=policy, by_time=True)
    facts = moment(shelf, pause=pause, prices=CachePrices(read, 1.25), round_=round_, view_tokens=view_tokens)
    found = choose(shelf, settings, facts=facts)
    assert found == choose(shelf, settings, facts=facts)
    if found is None:
        return
    standing = {item.result.id: item for item in shelf.live}
    gone = [standing[use] for use in found.ids]
    assert [item.order for item in gone] == sorted({item.order for item in gone}), "in order, each once"
    assert all(item.round < round_ for item in gone)
    assert all(item.order <= shelf.count - 2 for item in gone)
    assert found.saved_tokens == sum(item.result.saved_tokens for item in gone) > 0
    assert 0 <= found.rewrite_tokens <= facts.cached_tokens


class CountingShelf(ClearableResults):
    """Counts how many results are looked at closely."""

    looks = 0

    def age(self, item: PlacedResult) -> int:
        self.looks += 1
        return super().age(item)


def test_a_round_looks_at_few_results_however_many_there_are() -> None:
    shelf = CountingShelf()
    for number, result in enumerate(logs(3_000, 100)):
        shelf.add(result, round_=number + 1, place=40_000 + 100 * number, anchor=40_000 + 100 * number)
    cheap = CachePrices(0.001, 2.0)
    for number in range(3_001, 3_001 + FULL_SCAN_ROUNDS):
        choose(shelf, BALANCED, facts=moment(shelf, round_=number, prices=cheap))
    assert shelf.looks <= 3_000 + MAX_SCANNED_RESULTS * FULL_SCAN_ROUNDS


@pytest.mark.parametrize("rule", [choose_by_price, choose_prefix_by_price])
def test_a_large_view_is_cut_on_a_cheap_cache_that_never_goes_cold(rule: PriceRule) -> None:
    """What is gone is found again in the view that is left, which is small: a large one is no reason to keep
    it large."""
    reads = [called("Read", number, 5_000, file_path=f"/{number}.py") for number in range(80)]
    shelf = stock(*reads)
    facts = moment(shelf, prices=CachePrices(0.05, 1.25), warning_tokens=900_000)
    plan = rule(facts, shelf, ClearingLedger(), BALANCED)
    assert plan is not None
    assert plan.saved_tokens > facts.view_tokens / 2
