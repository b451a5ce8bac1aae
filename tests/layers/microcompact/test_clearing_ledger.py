"""What clearing has won against keeping everything."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.models import Prices
from sevenfold.core.prices import CATALOG
from sevenfold.layers.microcompact.facts import CachePrices, ClearingLedger, compute_cache_prices

FIVE_MINUTES, ONE_HOUR = timedelta(minutes=5), timedelta(hours=1)


@pytest.mark.parametrize(
    ("model", "ttl", "read", "write"),
    [
        ("claude-opus-5", FIVE_MINUTES, 0.1, 1.25),
        ("claude-opus-5", ONE_HOUR, 0.1, 2.0),
        ("claude-opus-5-5", FIVE_MINUTES, 0.05, 1.25),
        ("claude-fable-5-2", ONE_HOUR, 0.025, 2.0),
    ],
)
def test_prices_are_multiples_of_the_fresh_one(model: str, ttl: timedelta, read: float, write: float) -> None:
    tariff = CATALOG.find(model).prices_at()
    assert tariff is not None
    found = compute_cache_prices(tariff.prices, ttl)
    assert (found.read, found.write) == pytest.approx((read, write))


def test_a_free_model_is_treated_as_most_are() -> None:
    zero = Decimal(0)
    nothing = Prices(fresh=zero, written_5m=zero, written_1h=zero, read=zero, output=zero)
    assert compute_cache_prices(nothing, FIVE_MINUTES) == CachePrices(0.1, 1.25)
    assert compute_cache_prices(nothing, ONE_HOUR) == CachePrices(0.1, 2.0)


@given(
    st.lists(
        st.tuples(st.integers(0, 5_000), st.booleans(), st.floats(0, 1), st.floats(0, 1)),
        min_size=1,
        max_size=20,
    )
)
def test_what_was_won_is_what_everything_kept_would_have_cost_less_what_was_paid(
    rounds: list[tuple[int, bool, float, float]],
) -> None:
    prices, stakes = CachePrices(0.1, 1.25), ClearingLedger()
    view, cached, paid, is_first = 40_000, 0, 0.0, True
    for added, is_idle, share, depth in rounds:
        view += added
        is_cold = is_idle or is_first
        saved = int(share * (view - 40_000) / 2) if depth < 0.3 else 0
        kept = min(cached, view - saved)
        anchor = int(40_000 + depth * max(0, kept - 40_000))
        read = cached
        if saved:
            view -= saved
            read = min(anchor, cached)
            # Beyond reading what stays before the cut: what was cached behind it and is still in view.
            again = 0 if is_cold else max(0, cached - saved - read)
            stakes.cut(saved, (prices.write - prices.read) * again)
            if not is_cold and cached - saved < read:
                stakes.net_saved += (prices.write - prices.read) * (read - (cached - saved))
        paid += prices.write * view if is_cold else prices.read * read + prices.write * (view - read)
        stakes.send(view, prices, is_cold=is_cold)
        cached, is_first = view, False
    assert stakes.kept_cost - paid == pytest.approx(stakes.net_saved, rel=1e-6, abs=1e-3)


def test_a_result_that_is_asked_for_again_costs_a_round_and_its_tokens() -> None:
    prices, stakes = CachePrices(0.1, 1.25), ClearingLedger()
    stakes.cut(3_000, 0.0)
    stakes.record_reread(3_000, 50_000, prices)
    assert stakes.net_saved == pytest.approx(-(0.1 * 50_000 + 1.25 * 3_000))
    stakes.send(50_000, prices, is_cold=False)
    assert stakes.cleared_tokens == 0
    assert stakes.net_saved == pytest.approx(-(0.1 * 50_000 + 1.25 * 3_000)), "nothing is saved any more"


def test_a_compaction_ends_what_is_saved_and_keeps_what_was_won() -> None:
    prices, stakes = CachePrices(0.1, 1.25), ClearingLedger()
    stakes.cut(10_000, 0.0)
    stakes.send(50_000, prices, is_cold=False)
    won = stakes.net_saved
    stakes.start_over()
    stakes.send(20_000, prices, is_cold=False)
    assert stakes.net_saved == won > 0
