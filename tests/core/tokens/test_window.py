"""Windows and thresholds, with the numbers that docs/settings.md states."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.prices import CATALOG
from sevenfold.core.tokens import Thresholds, WindowFacts, WindowSettings, choose_window, plan_thresholds

PLAIN = WindowSettings()
BETA = ("context-1m-2025-08-07",)


@pytest.mark.parametrize(
    ("name", "betas", "setting", "window"),
    [
        ("claude-sonnet-4-5[1m]", (), 50_000, 1_000_000),
        ("claude-sonnet-4-5", BETA, 50_000, 200_000),
        ("claude-opus-5-5", (), 50_000, 1_000_000),
        ("stranger[1m]", (), 50_000, 1_000_000),
        ("claude-sonnet-4-5[1M]", (), 50_000, 1_000_000),
        ("stranger", BETA, 50_000, 1_000_000),
        ("stranger", ("other-beta",), 50_000, 50_000),
        ("stranger", (), None, 200_000),
    ],
)
def test_the_window_is_the_first_answer(
    name: str, betas: tuple[str, ...], setting: int | None, window: int
) -> None:
    settings = WindowSettings(tokens=setting)
    assert choose_window(name, CATALOG.find(name), betas, settings) == window


@pytest.mark.parametrize(
    ("window", "output", "expected"),
    [
        # effective, auto-compact, warning, blocking
        (
            200_000,
            64_000,
            Thresholds(
                effective=180_000, auto_compact=167_000, warning=160_000, blocking=177_000, is_automatic=True
            ),
        ),
        (
            1_000_000,
            128_000,
            Thresholds(
                effective=980_000, auto_compact=967_000, warning=960_000, blocking=977_000, is_automatic=True
            ),
        ),
        (
            200_000,
            20_000,
            Thresholds(
                effective=180_000, auto_compact=167_000, warning=160_000, blocking=177_000, is_automatic=True
            ),
        ),
        (
            200_000,
            8_192,
            Thresholds(
                effective=191_808, auto_compact=178_808, warning=171_808, blocking=188_808, is_automatic=True
            ),
        ),
        (
            64_000,
            4_096,
            Thresholds(
                effective=59_904, auto_compact=46_904, warning=39_904, blocking=56_904, is_automatic=True
            ),
        ),
        (16_000, 20_000, Thresholds(effective=0, auto_compact=0, warning=0, blocking=0, is_automatic=True)),
    ],
)
def test_thresholds_lie_where_the_spec_puts_them(window: int, output: int, expected: Thresholds) -> None:
    assert plan_thresholds(WindowFacts(window, output), PLAIN) == expected


@pytest.mark.parametrize(
    ("pct", "point"),
    [("50", 90_000), ("92.5", 166_500), ("93", 167_000), ("100", 167_000), ("0.001", 1), ("57", 102_600)],
)
def test_a_percentage_lowers_the_point_and_never_raises_it(pct: str, point: int) -> None:
    facts = WindowFacts(200_000, 64_000, auto_compact_pct=Decimal(pct))
    assert plan_thresholds(facts, PLAIN).auto_compact == point


def test_percent_left_counts_to_automatic_compaction_while_that_is_on() -> None:
    on = plan_thresholds(WindowFacts(200_000, 64_000), PLAIN)
    assert on.percent_left(0) == 100
    assert on.percent_left(83_500) == 50
    assert on.percent_left(167_000) == 0
    assert on.percent_left(500_000) == 0


def test_percent_left_counts_to_the_effective_window_otherwise() -> None:
    off = plan_thresholds(WindowFacts(200_000, 64_000, is_automatic=False), PLAIN)
    assert off.percent_left(90_000) == 50
    assert not off.is_compact_due(199_000)


def test_compaction_is_due_at_its_point_and_not_before() -> None:
    on = plan_thresholds(WindowFacts(200_000, 64_000), PLAIN)
    assert not on.is_compact_due(166_999)
    assert on.is_compact_due(167_000)


@pytest.mark.parametrize(
    ("current", "level"),
    [(0, "fine"), (159_999, "fine"), (160_000, "warning"), (176_999, "warning"), (177_000, "blocked")],
)
def test_the_level_rises_from_fine_to_blocked(current: int, level: str) -> None:
    assert plan_thresholds(WindowFacts(200_000, 64_000), PLAIN).level(current) == level


def test_a_window_smaller_than_its_margins_has_no_room_until_they_are_made_smaller() -> None:
    facts = WindowFacts(16_000, 4_000)
    assert plan_thresholds(facts, PLAIN).percent_left(0) == 0
    small = WindowSettings(
        output_reserve_tokens=2_000,
        auto_compact_margin_tokens=1_300,
        warning_margin_tokens=2_000,
        blocking_margin_tokens=300,
    )
    assert plan_thresholds(facts, small) == Thresholds(
        effective=14_000, auto_compact=12_700, warning=12_000, blocking=13_700, is_automatic=True
    )


TOKENS = st.integers(0, 2_000_000)
PERCENT = st.none() | st.decimals(min_value="0.001", max_value=100, places=3)


@given(TOKENS, TOKENS, TOKENS, st.booleans(), PERCENT)
def test_no_window_breaks_the_order_of_things(
    window: int, output: int, current: int, automatic: bool, pct: Decimal | None
) -> None:
    points = plan_thresholds(WindowFacts(window, output, automatic, pct), PLAIN)
    assert 0 <= points.warning <= points.blocking <= points.effective <= window
    assert 0 <= points.auto_compact <= points.blocking
    assert 0 <= points.percent_left(current) <= 100
    assert points.percent_left(current + 1) <= points.percent_left(current)
