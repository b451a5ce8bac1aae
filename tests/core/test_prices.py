"""What a request cost, to the last fraction of a cent."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import ROUND_DOWN, Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError
from sevenfold.core.models import MODELS, Model, make_unknown_model
from sevenfold.core.prices import (
    CATALOG,
    NO_COST,
    Cost,
    ModelSettings,
    compute_cost,
    compute_uncached_cost,
    sum_costs,
)
from sevenfold.core.usage import Iteration, Usage, read_usage

MILLION = 1_000_000
ONE_OF_EACH = Usage(fresh=MILLION, read=MILLION, written_5m=MILLION, written_1h=MILLION, output=MILLION)


def priced(
    usage: Usage, name: str, *, batch: bool | None = None, geo: str | None = None, speed: str | None = None
) -> Cost:
    tier = usage.service_tier if batch is None else "batch" if batch else "standard"
    billed = replace(usage, service_tier=tier, geo=geo or usage.geo, speed=speed or usage.speed)
    found = compute_cost(billed, CATALOG.find(name))
    assert found is not None
    return found


def test_a_million_tokens_of_each_part_cost_the_list_price() -> None:
    assert priced(ONE_OF_EACH, "claude-opus-5-5") == Cost(
        read=Decimal("0.20"),
        written_5m=Decimal(5),
        written_1h=Decimal(8),
        fresh=Decimal(4),
        output=Decimal(20),
    )
    assert priced(ONE_OF_EACH, "claude-opus-5-5").total == Decimal("37.20")


def test_haiku_costs_by_the_size_of_the_whole_prompt() -> None:
    below = Usage(fresh=1, read=99_998, written_5m=1, output=MILLION)
    above = Usage(fresh=1, read=99_999, written_5m=1, output=MILLION)
    assert below.prompt == 100_000
    assert priced(below, "claude-haiku-5-5").output == Decimal("0.50")
    assert priced(above, "claude-haiku-5-5").output == Decimal("2.50")
    assert priced(above, "claude-haiku-5-5").read == Decimal("0.05") * 99_999 / MILLION


def test_fast_mode_doubles_every_part_of_opus() -> None:
    fast, plain = priced(ONE_OF_EACH, "claude-opus-5-5", speed="fast"), priced(ONE_OF_EACH, "claude-opus-5-5")
    assert (fast.fresh, fast.output) == (8, 40)
    assert (fast.read, fast.written_5m, fast.written_1h) == (plain.read * 2, 10, 16)


def test_a_speed_without_a_price_has_no_cost() -> None:
    assert compute_cost(replace(ONE_OF_EACH, speed="fast"), CATALOG.find("claude-sonnet-5")) is None


def test_multipliers_stack() -> None:
    cheap = priced(ONE_OF_EACH, "claude-opus-5-5", batch=True, geo="us", speed="fast")
    assert cheap.fresh == Decimal("4") * 2 * Decimal("0.5") * Decimal("1.1")
    assert priced(ONE_OF_EACH, "claude-opus-5-5", batch=True).total == Decimal("18.60")


def test_the_us_factor_spares_models_before_4_6() -> None:
    assert priced(ONE_OF_EACH, "claude-opus-4-6", geo="us").fresh == Decimal("5.5")
    assert priced(ONE_OF_EACH, "claude-opus-4-5", geo="us").fresh == 5
    assert priced(ONE_OF_EACH, "claude-opus-4-6", geo="global").fresh == 5


def test_tier_speed_and_region_come_from_the_usage() -> None:
    usage = read_usage(
        {"input_tokens": MILLION, "service_tier": "batch", "speed": "fast", "inference_geo": "us"}
    )
    assert priced(usage, "claude-opus-5-5").fresh == Decimal("4.4")
    assert priced(usage, "claude-opus-5-5", batch=False, geo="eu", speed="standard").fresh == 4


def test_an_old_session_is_priced_as_it_was() -> None:
    sonnet, usage = CATALOG.find("claude-sonnet-5-5"), Usage(read=MILLION)
    before, after = (
        compute_cost(usage, sonnet, when=date(2026, 10, 6)),
        compute_cost(usage, sonnet, when=date(2026, 10, 7)),
    )
    assert before is not None
    assert after is not None
    assert (before.read, after.read) == (Decimal("0.20"), Decimal("0.10"))


def test_an_unknown_model_costs_none_and_not_nothing() -> None:
    assert compute_cost(Usage(), make_unknown_model("some-model")) is None
    assert compute_uncached_cost(Usage(), make_unknown_model("some-model")) is None


def test_a_compaction_is_paid_on_top_of_the_totals() -> None:
    compaction = Iteration(fresh=MILLION, output=MILLION, kind="compaction")
    message = Iteration(fresh=1, kind="message")
    usage = Usage(fresh=MILLION, iterations=(compaction, message))
    assert priced(usage, "claude-opus-5").total == 5 + 5 + 25


def test_a_compaction_has_a_tier_of_its_own() -> None:
    usage = Usage(fresh=100_000, iterations=(Iteration(fresh=100_001, kind="compaction"),))
    expected = (Decimal("0.10") * 100_000 + Decimal("0.50") * 100_001) / MILLION
    assert priced(usage, "claude-haiku-5-5").total == expected


def test_an_advisor_is_paid_at_the_price_of_its_own_model() -> None:
    advisor = Iteration(output=MILLION, kind="advisor_message", model="claude-fable-5-2")
    usage = Usage(output=MILLION, iterations=(advisor,))
    assert priced(usage, "claude-haiku-4-5").output == 5 + 40
    stranger = Usage(iterations=(Iteration(output=1, kind="advisor_message", model="stranger"),))
    assert compute_cost(stranger, CATALOG.find("claude-haiku-4-5")) is None
    price = ModelSettings(input_usd_per_mtok=Decimal(1), output_usd_per_mtok=Decimal(MILLION))
    ours = CATALOG.with_overrides({"stranger": price})
    known = compute_cost(stranger, CATALOG.find("claude-haiku-4-5"), catalog=ours)
    assert known == Cost(output=Decimal(1))


def fallen_back(total: Usage) -> Usage:
    declined = Iteration(fresh=MILLION, output=MILLION)
    served = Iteration(read=MILLION, output=MILLION, kind="fallback_message", model="claude-opus-5-5")
    summary = Iteration(fresh=MILLION, kind="compaction")
    return replace(total, iterations=(declined, summary, served))


def test_a_fallback_inside_the_totals_is_paid_at_the_price_of_its_own_model() -> None:
    usage = fallen_back(Usage(fresh=MILLION, read=MILLION, output=2 * MILLION))
    assert priced(usage, "claude-opus-5") == Cost(
        read=Decimal("0.20"), fresh=Decimal(5 + 5), output=Decimal(25 + 20)
    )
    bare = compute_uncached_cost(usage, CATALOG.find("claude-opus-5"))
    assert bare == Cost(fresh=Decimal(5 + 5 + 4), output=Decimal(25 + 20))


@pytest.mark.parametrize(
    "total",
    [
        Usage(read=MILLION, output=MILLION),
        Usage(fresh=MILLION, read=MILLION, output=MILLION),
        Usage(fresh=2 * MILLION, output=2 * MILLION),
    ],
    ids=["the served run alone", "less output", "read as fresh"],
)
def test_a_fallback_that_does_not_add_up_to_the_totals_has_no_cost(total: Usage) -> None:
    assert compute_cost(fallen_back(total), CATALOG.find("claude-opus-5")) is None


def test_a_run_on_a_model_without_a_price_leaves_the_request_without_one() -> None:
    run = Iteration(output=1, kind="fallback_message", model="stranger")
    assert compute_cost(Usage(output=1, iterations=(run,)), CATALOG.find("claude-opus-5")) is None


def test_a_run_that_names_the_requests_own_model_leaves_the_totals_as_they_are() -> None:
    run = Iteration(output=1, model="claude-haiku-4-5-20251001")
    usage = Usage(output=MILLION, iterations=(run,))
    assert priced(usage, "claude-haiku-4-5").output == 5


def test_without_caching_every_prompt_token_is_fresh() -> None:
    usage = Usage(
        fresh=1, read=MILLION, written_5m=2, written_1h=3, iterations=(Iteration(read=4, kind="compaction"),)
    )
    bare = compute_uncached_cost(usage, CATALOG.find("claude-opus-5"))
    assert bare == Cost(fresh=Decimal(5) * (MILLION + 10) / MILLION)


def test_a_sum_of_requests_has_no_price() -> None:
    with pytest.raises(InputError, match="a sum of 2 requests has no price"):
        compute_cost(Usage() + Usage(), CATALOG.find("claude-haiku-5-5"))


def test_one_unknown_part_makes_the_total_unknown() -> None:
    assert sum_costs([Cost(fresh=Decimal(1)), None]) is None
    assert sum_costs([]) == NO_COST
    assert sum_costs([Cost(fresh=Decimal(1)), Cost(output=Decimal(2))]) == Cost(
        fresh=Decimal(1), output=Decimal(2)
    )


COUNT = st.integers(0, 10**12)
PRICED = st.sampled_from(MODELS)


@given(COUNT, COUNT, COUNT, COUNT, COUNT, PRICED, st.booleans(), st.sampled_from([None, "us"]))
def test_costs_are_exact_and_add_up(
    fresh: int, read: int, short: int, long: int, out: int, model: Model, batch: bool, geo: str | None
) -> None:
    usage = Usage(
        fresh=fresh,
        read=read,
        written_5m=short,
        written_1h=long,
        output=out,
        service_tier="batch" if batch else None,
        geo=geo,
    )
    found = compute_cost(usage, model)
    tariff = model.prices_at()
    assert found is not None
    assert tariff is not None
    prices = tariff.for_prompt(usage.prompt)
    factor = Fraction(1, 2 if batch else 1) * Fraction(model.us_factor if geo else 1)
    expected = factor * (
        fresh * Fraction(prices.fresh)
        + read * Fraction(prices.read)
        + short * Fraction(prices.written_5m)
        + long * Fraction(prices.written_1h)
        + out * Fraction(prices.output)
    )
    assert Fraction(found.total) == expected / MILLION
    assert (found + found).total == found.total * 2


@given(COUNT, COUNT, COUNT, PRICED)
def test_reading_from_the_cache_never_costs_more_than_not_caching(
    fresh: int, read: int, out: int, model: Model
) -> None:
    usage = Usage(fresh=fresh, read=read, output=out)
    with_cache, without = compute_cost(usage, model), compute_uncached_cost(usage, model)
    assert with_cache is not None
    assert without is not None
    assert with_cache.total <= without.total


def test_a_caller_with_a_coarse_context_of_its_own_gets_exact_costs_all_the_same() -> None:
    usage = Usage(fresh=123_456_789)
    exact = priced(usage, "claude-opus-5").total
    with localcontext(Context(prec=3, rounding=ROUND_DOWN)):
        assert priced(usage, "claude-opus-5").total == exact
    assert exact == Decimal("617.283945")
