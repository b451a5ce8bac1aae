"""The cheapest cuts with hindsight, against every set of cuts there is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.layers.microcompact.facts import MARKER_TOKENS
from sevenfold.replay.policies import CLEARING_POLICIES
from sevenfold.replay.policies.counterfactual import CacheRates, play_recording
from sevenfold.replay.policies.policy_trial import find_optimum
from sevenfold.replay.policies.recording import RecordedSegment
from tests.examples import up_to
from tests.replay.policies.recordings import (
    FIVE,
    FRAME_TOKENS,
    HOUR,
    Made,
    busy_round,
    made_rounds,
    recording,
    segment,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of a view: a result, its marker, a result read again, or what was said."""

    kind: str
    number: int
    tokens: int
    group: float
    """The request that brought it."""

    @property
    def can_go(self) -> bool:
        return self.kind == "again" or (self.kind == "result" and self.tokens > MARKER_TOKENS)


def naive_cost(made: RecordedSegment, rates: CacheRates, cuts: frozenset[int], keep: int) -> float:
    """What these cuts cost, by putting every view together and comparing it with the one before."""
    view: list[Shown] = []
    ends: set[int] = {0}
    cost, joined, last = 0.0, 0, FRAME_TOKENS
    for number, turn in enumerate(made.rounds):
        shown_before = joined
        cold = number == 0 or turn.started - made.rounds[number - 1].started > rates.ttl
        for at in turn.results:
            view.append(Shown("said", at, made.results[at].place - last, number))
            view.append(Shown("result", at, made.results[at].result.tokens, number))
            last = made.results[at].place + made.results[at].result.tokens
            joined += 1
        view.append(Shown("said", -1, turn.tokens - last, number))
        last = turn.tokens
        if number in cuts:
            view = cut(view, min(shown_before, joined - keep), ends)
        sizes = [0, *accumulate(each.tokens for each in view)]
        read = 0 if cold else FRAME_TOKENS + sizes[max(ends)]
        whole = FRAME_TOKENS + sizes[-1]
        cost += rates.prices.read * read + rates.prices.write * (whole - read)
        ends = ({0} if cold else ends) | {len(view), marked(view)}
        there = {each.number for each in view if each.kind in {"result", "again"}}
        needed = {use.sources[-1] for use in turn.uses if not there & set(use.sources)}
        if needed:
            tokens = {at: made.results[at].result.tokens for at in sorted(needed)}
            cost += rates.prices.read * whole + rates.prices.write * sum(tokens.values())
            view += [Shown("again", at, size, number + 0.5) for at, size in tokens.items()]
            ends |= {len(view)}
    return cost


def marked(view: list[Shown]) -> int:
    """Where every request marks the cache besides its end: before what brought the first that could go."""
    group = next((each.group for each in view if each.can_go), None)
    return next((at for at, each in enumerate(view) if each.group == group), len(view))


def cut(view: list[Shown], depth: int, ends: set[int]) -> list[Shown]:
    """The view with the first results as markers and nothing read again; ends that it spoils are dropped."""
    after = list[Shown]()
    for each in view:
        if each.kind == "result" and each.number < depth and each.can_go:
            after.append(Shown("marker", each.number, MARKER_TOKENS, each.group))
        elif each.kind != "again":
            after.append(each)
    pairs = enumerate(zip(view, after, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(view), len(after)))
    ends -= {end for end in ends if end > same}
    return after


def cheapest(made: RecordedSegment, rates: CacheRates, keep: int) -> float:
    count = len(made.rounds)
    every = (frozenset(cuts) for size in range(count + 1) for cuts in combinations(range(1, count), size))
    return min(naive_cost(made, rates, cuts, keep) for cuts in every)


@settings(max_examples=up_to(60))
@given(st.integers(0, 2**32), st.sampled_from([FIVE, HOUR]), st.integers(1, 3))
def test_no_set_of_cuts_is_cheaper_and_one_costs_just_that(seed: int, rates: CacheRates, keep: int) -> None:
    chance = Random(seed)
    whole = segment([busy_round(chance) for _ in range(chance.randint(1, 8))])
    plan = find_optimum(recording(whole), rates, keep)
    assert plan.cost == pytest.approx(cheapest(whole, rates, keep))
    assert plan.cost == pytest.approx(naive_cost(whole, rates, frozenset(plan.cuts), keep))


@given(st.lists(made_rounds, min_size=1, max_size=12), st.sampled_from([FIVE, HOUR]))
def test_the_optimum_is_never_dearer_than_keeping_everything(made: list[Made], rates: CacheRates) -> None:
    whole = recording(segment(made))
    kept = play_recording(whole, CLEARING_POLICIES["keep"], rates)
    assert find_optimum(whole, rates).cost <= kept.cost + 1e-6
    assert kept.cost == pytest.approx(naive_cost(whole.segments[0], rates, frozenset(), 5))


def test_cuts_are_made_where_they_pay() -> None:
    large = [Made(results=(3_000,)) for _ in range(12)]
    idle = [Made(results=(3_000,), minutes=10) for _ in range(3)]
    made = recording(segment([*large, *idle]))
    assert 12 in find_optimum(made, FIVE).cuts, "the first request after a pause"
    assert find_optimum(recording(segment(large[:5])), FIVE).cuts == (), "the last five stay"


def test_stretches_are_solved_apart_and_their_rounds_counted_through() -> None:
    part = [Made(results=(5_000,), minutes=6) for _ in range(14)]
    once = find_optimum(recording(segment(part)), FIVE)
    twice = find_optimum(recording(segment(part), segment(part)), FIVE)
    assert once.cuts
    assert twice.cost == pytest.approx(2 * once.cost)
    assert twice.cuts == (*once.cuts, *(number + 14 for number in once.cuts))


def test_the_frame_is_read_after_a_boundary_while_its_cache_lives() -> None:
    part = segment([Made()])
    soon = segment([Made()], previous=part.rounds[0].started)
    saved = FRAME_TOKENS * (FIVE.prices.write - FIVE.prices.read)
    one, other = find_optimum(recording(part), FIVE), find_optimum(recording(soon), FIVE)
    assert one.cost - other.cost == pytest.approx(saved)
