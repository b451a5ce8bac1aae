from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.tokens.estimation import HIGHEST, LOWEST, START_FACTOR, Calibration, TokenMix

sizes = st.floats(min_value=-1e7, max_value=1e7, allow_nan=False)
mixes = st.builds(TokenMix, sizes, sizes, sizes, sizes)
bills = st.integers(min_value=-(10**15), max_value=10**15) | st.integers() | st.floats()
lessons = st.lists(st.tuples(mixes, bills), max_size=30)


def taught(lessons: list[tuple[TokenMix, float]]) -> Calibration:
    calibration = Calibration()
    for mix, billed in lessons:
        calibration = calibration.learn(mix, billed)
    return calibration


def _calls() -> Iterator[TokenMix]:
    chance = Random(1)
    while True:
        yield TokenMix(
            said=chance.choice((60, 120, 900)),
            asked=90,
            got=chance.randrange(40, 2_500),
            told=chance.randrange(60),
        )


CALLS = tuple(islice(_calls(), 200))


def bill(mix: TokenMix, factors: TokenMix) -> float:
    return sum(size * factor for size, factor in zip(mix.values, factors.values, strict=True))


@given(lessons)
def test_factors_stay_in_bounds_whatever_is_billed(lessons: list[tuple[TokenMix, float]]) -> None:
    calibration = taught(lessons)
    assert all(LOWEST <= factor <= HIGHEST for factor in calibration.factors.values)
    assert all(-1 <= value <= 1 for row in calibration.spread for value in row)


@given(lessons, st.builds(TokenMix, *[st.floats(min_value=0, max_value=1e7)] * 4))
def test_an_estimate_of_content_is_never_negative(
    lessons: list[tuple[TokenMix, float]], mix: TokenMix
) -> None:
    assert 0 <= taught(lessons).estimate(mix) <= HIGHEST * sum(mix.values) * (1 + 1e-9)


@pytest.mark.parametrize("billed", [0, -1, -(10**9), float("nan"), float("inf"), 10**400, 1e9])
def test_a_bill_that_teaches_nothing_changes_nothing(billed: float) -> None:
    start = Calibration()
    assert start.learn(CALLS[0], billed) is start
    assert start.learn(TokenMix(), 100) is start


@pytest.mark.parametrize("factor", [0.75, 1.0, 1.3, 1.6])
def test_another_tokenizer_is_learnt_within_ten_calls(factor: float) -> None:
    calibration = taught([(mix, bill(mix, TokenMix(*[factor] * 4))) for mix in CALLS[:10]])
    assert calibration.estimate(CALLS[11]) == pytest.approx(factor * sum(CALLS[11].values), rel=0.04)


@pytest.mark.parametrize(
    "factors",
    [TokenMix(1, 1, 1.3, 1), TokenMix(1.3, 1, 1, 1), TokenMix(0.8, 1.2, 1, 1)],
    ids=["results", "replies", "two classes"],
)
def test_each_class_learns_its_own_factor(factors: TokenMix) -> None:
    calibration = taught([(mix, bill(mix, factors)) for mix in CALLS])
    assert calibration.factors.got == pytest.approx(factors.got, abs=0.03)
    assert calibration.factors.said == pytest.approx(factors.said, abs=0.05)


def test_a_call_with_tokens_nobody_logged_moves_the_factors_hardly_at_all() -> None:
    usual = [(mix, bill(mix, TokenMix(1, 1, 1, 1))) for mix in CALLS[:20]]
    before = taught(usual)
    after = before.learn(CALLS[20], sum(CALLS[20].values) + 50_000)
    assert after.factors.values == pytest.approx(before.factors.values, abs=0.01)


def test_one_call_in_ten_with_something_unlogged_leaves_the_estimate_near_the_rest() -> None:
    noisy = [(mix, sum(mix.values) * (2.5 if n % 10 == 9 else 1)) for n, mix in enumerate(CALLS)]
    assert taught(noisy).estimate(CALLS[3]) == pytest.approx(sum(CALLS[3].values), rel=0.06)


def test_a_session_starts_from_the_measured_values() -> None:
    assert Calibration().estimate(TokenMix(100, 100, 100, 100)) == pytest.approx(400 * START_FACTOR)


def test_a_class_that_was_never_seen_follows_the_others() -> None:
    results_only = [TokenMix(got=500.0 + n) for n in range(30)]
    calibration = taught([(mix, 1.5 * mix.got) for mix in islice(results_only, 30)])
    assert calibration.factors.told == pytest.approx(1.45, abs=0.06)


def test_text_that_nobody_logged_does_not_raise_the_factors() -> None:
    """One bill in twelve holds 100 to 1,500 tokens more than was sent, as a reminder of the agent does."""
    chance = Random(3)
    truth = TokenMix(1.0, 1.0, 1.0, 1.0)
    calibration, errors = Calibration(), list[float]()
    for number, mix in enumerate(CALLS):
        billed = bill(mix, truth) * chance.gauss(1, 0.03)
        errors.append(calibration.estimate(mix) / bill(mix, truth) - 1)
        unlogged = chance.choice((100, 250, 1_500)) if number % 12 == 5 else 0
        calibration = calibration.learn(mix, billed + unlogged)
    assert abs(median(errors[20:])) < 0.01
    assert max(errors[20:]) < 0.03
