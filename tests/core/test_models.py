"""The table of models has the provider's figures, repeated here by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from sevenfold.core.models import MODELS, Model, Prices, is_local_model
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import MAX_BREAKPOINTS, Capabilities, choose_capabilities

ROWS = {
    # name: window, max output, cache minimum, fresh, 5m, 1h, read, output
    "claude-fable-5-2": (1_000_000, 128_000, 512, "8", "10", "16", "0.20", "40"),
    "claude-mythos-5-2": (1_000_000, 128_000, 512, "8", "10", "16", "0.20", "40"),
    "claude-fable-5-1": (1_000_000, 128_000, 512, "10", "12.5", "20", "0.25", "50"),
    "claude-mythos-5-1": (1_000_000, 128_000, 512, "10", "12.5", "20", "0.25", "50"),
    "claude-fable-5": (1_000_000, 128_000, 512, "10", "12.5", "20", "1", "50"),
    "claude-mythos-5": (1_000_000, 128_000, 512, "10", "12.5", "20", "1", "50"),
    "claude-opus-5-5": (1_000_000, 128_000, 512, "4", "5", "8", "0.20", "20"),
    "claude-opus-5": (1_000_000, 128_000, 512, "5", "6.25", "10", "0.50", "25"),
    "claude-opus-4-8": (1_000_000, 128_000, 1024, "5", "6.25", "10", "0.50", "25"),
    "claude-opus-4-7": (1_000_000, 128_000, 2048, "5", "6.25", "10", "0.50", "25"),
    "claude-opus-4-6": (1_000_000, 128_000, 4096, "5", "6.25", "10", "0.50", "25"),
    "claude-opus-4-5": (200_000, 64_000, 4096, "5", "6.25", "10", "0.50", "25"),
    "claude-sonnet-5-5": (1_000_000, 128_000, 512, "2", "2.5", "4", "0.10", "10"),
    "claude-sonnet-5": (1_000_000, 128_000, 1024, "2", "2.5", "4", "0.20", "10"),
    "claude-sonnet-4-6": (1_000_000, 128_000, 1024, "3", "3.75", "6", "0.30", "15"),
    "claude-sonnet-4-5": (200_000, 64_000, 1024, "3", "3.75", "6", "0.30", "15"),
    "claude-haiku-5-5": (1_000_000, 128_000, 512, "0.10", "0.125", "0.20", "0.01", "0.50"),
    "claude-haiku-4-5": (200_000, 64_000, 4096, "1", "1.25", "2", "0.10", "5"),
}

READ_SHARE = {
    "claude-fable-5-2": "0.025",
    "claude-mythos-5-2": "0.025",
    "claude-fable-5-1": "0.025",
    "claude-mythos-5-1": "0.025",
    "claude-opus-5-5": "0.05",
    "claude-sonnet-5-5": "0.05",
}
"""What a cache read costs against a fresh token, where it is not a tenth."""


def test_the_table_holds_exactly_the_models_of_the_provider_contract() -> None:
    assert {model.name for model in MODELS} == set(ROWS)
    assert len(MODELS) == len(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_each_row_has_its_sizes_and_prices(name: str) -> None:
    model = CATALOG.find(name)
    tariff = model.prices_at()
    assert tariff is not None
    window, output, minimum, *rest = ROWS[name]
    fresh, written_5m, written_1h, read, answer = (Decimal(item) for item in rest)
    assert (model.window_tokens, model.max_output_tokens, model.cache_min_tokens) == (window, output, minimum)
    assert tariff.prices == Prices(
        fresh=fresh, written_5m=written_5m, written_1h=written_1h, read=read, output=answer
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_cache_prices_keep_their_ratio_to_fresh_input(model: Model) -> None:
    tariff = model.prices_at()
    assert tariff is not None
    for prices in filter(None, (tariff.prices, tariff.long_prices)):
        assert prices.written_5m == prices.fresh * Decimal("1.25")
        assert prices.written_1h == prices.fresh * 2
        assert prices.read == prices.fresh * Decimal(READ_SHARE.get(model.name, "0.1"))
        assert prices.output == prices.fresh * 5


def test_haiku_reprices_the_whole_request_strictly_above_a_hundred_thousand_tokens() -> None:
    tariff = CATALOG.find("claude-haiku-5-5").prices_at()
    assert tariff is not None
    assert tariff.for_prompt(100_000).fresh == Decimal("0.10")
    assert tariff.for_prompt(100_001) == Prices(
        fresh=Decimal("0.50"),
        written_5m=Decimal("0.625"),
        written_1h=Decimal(1),
        read=Decimal("0.05"),
        output=Decimal("2.50"),
    )


def test_only_haiku_has_a_tier() -> None:
    tiered = [model.name for model in MODELS for item in model.tariffs if item.long_prices is not None]
    assert tiered == ["claude-haiku-5-5"]


@pytest.mark.parametrize(
    ("when", "read"),
    [
        (date(2026, 10, 6), "0.20"),
        (date(2026, 10, 7), "0.10"),
        (datetime(2026, 10, 6, 23, 59, tzinfo=UTC), "0.20"),
        (datetime(2026, 10, 7, tzinfo=UTC), "0.10"),
        (datetime(2026, 10, 7, 1, tzinfo=timezone(timedelta(hours=2))), "0.20"),
        (datetime(2026, 10, 7), "0.10"),
        (date(2020, 1, 1), "0.20"),
        (None, "0.10"),
    ],
)
def test_sonnet_reads_were_dearer_before_their_price_changed(when: date | None, read: str) -> None:
    tariff = CATALOG.find("claude-sonnet-5-5").prices_at(when)
    assert tariff is not None
    assert tariff.prices.read == Decimal(read)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_tariffs_are_in_order_and_the_first_holds_from_the_start(model: Model) -> None:
    days = [item.since for item in model.tariffs]
    assert days[0] is None
    assert days[1:] == sorted(day for day in days if day is not None)


def named(flag: str) -> set[str]:
    return {model.name.removeprefix("claude-") for model in MODELS if getattr(model, flag)}


def test_preserved_thinking_runs_on_the_newest_models() -> None:
    signed = {"fable-5-1", "fable-5-2", "mythos-5-1", "mythos-5-2", "opus-5-5", "sonnet-5-5", "haiku-5-5"}
    assert named("has_preserved_thinking") == signed


def test_the_prefix_is_enforced_for_every_account_on_three_models() -> None:
    assert named("enforces_prefix") == {"fable-5-2", "mythos-5-2", "mythos-5-1"}


def test_the_system_role_is_taken_from_opus_4_8_on_and_not_by_sonnet_5() -> None:
    opus = {"opus-4-8", "opus-5", "opus-5-5"}
    fable = {f"{family}-{release}" for family in ("fable", "mythos") for release in ("5", "5-1", "5-2")}
    assert named("takes_system_role") == opus | fable | {"sonnet-5-5", "haiku-5-5"}


def test_models_before_4_7_use_the_older_tokenizer() -> None:
    older = {model.name.removeprefix("claude-") for model in MODELS if model.tokenizer == "older"}
    assert older == {"opus-4-5", "opus-4-6", "sonnet-4-5", "sonnet-4-6", "haiku-4-5"}


def test_the_us_factor_holds_from_4_6_on() -> None:
    flat = {model.name.removeprefix("claude-") for model in MODELS if model.us_factor == 1}
    assert flat == {"opus-4-5", "sonnet-4-5", "haiku-4-5"}


def test_only_opus_5_5_has_a_fast_price() -> None:
    fast = {model.name: model.fast_factor for model in MODELS if model.fast_factor is not None}
    assert fast == {"claude-opus-5-5": Decimal(2)}


def test_a_model_that_is_a_file_is_known_by_its_ending() -> None:
    assert [is_local_model(name) for name in ("qwen.gguf", "Q.GGUF", "claude-opus-5", "gguf")] == [
        *(True, True, False, False)
    ]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_what_a_model_takes_depends_on_the_provider_it_is_asked_through(model: Model) -> None:
    assert choose_capabilities(model, "openai") == Capabilities(rewrites_history=True)
    assert choose_capabilities(model, "anthropic") == Capabilities(
        rewrites_history=not model.has_preserved_thinking,
        has_server_edits=True,
        compacts_on_demand=model.has_preserved_thinking,
        takes_system_role=model.takes_system_role,
        breakpoints=MAX_BREAKPOINTS,
    )
