"""A model is found by any name it goes by, and never by a name that is another's."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import SettingsError
from sevenfold.core.events import Event, ModelUnknown, PriceUnknown
from sevenfold.core.models import MODELS, Model
from sevenfold.core.prices import CATALOG, ModelSettings, build_catalog, compute_cost, find_cheapest_model
from sevenfold.core.settings import SettingSource
from sevenfold.core.settings.merge import RawSettings, merge_settings
from sevenfold.core.tokens import WindowSettings, choose_window
from sevenfold.core.usage import Usage


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-haiku-4-5-latest", "claude-haiku-4-5"),
        ("anthropic/claude-opus-5-5", "claude-opus-5-5"),
        ("openrouter/anthropic/claude-opus-4.5", "claude-opus-4-5"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("global.anthropic.claude-opus-5-5-v1", "claude-opus-5-5"),
        ("bedrock/us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        (
            "arn:aws:bedrock:us-east-1:1234:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0",
            "claude-haiku-4-5",
        ),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("vertex_ai/claude-opus-4-8@default", "claude-opus-4-8"),
        ("mythos-5-2", "claude-mythos-5-2"),
        ("anthropic/mythos-5-1", "claude-mythos-5-1"),
        ("claude-mythos-5", "claude-mythos-5"),
        ("claude-opus-5[1m]", "claude-opus-5"),
        ("claude-opus-5[1M]", "claude-opus-5"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0[1M]", "claude-opus-4-5"),
    ],
)
def test_a_model_is_found_under_every_spelling(name: str, canonical: str) -> None:
    events: list[Event] = []
    assert CATALOG.find(name, events.append).name == canonical
    assert events == []


@pytest.mark.parametrize(
    "name",
    [
        "gpt-9",
        "claude-opus-5-5-finetuned",
        "claude-opus-6",
        "claude-opus-55",
        "claude-opus-4-5-2025",
        "acme/claude-opus-5-5",
        "claude-",
        "",
        "<synthetic>",
        "claude-opus-5-5-20250101-20250101-extra",
        "x" * 100_000,
        "-20250929" * 2_000,
    ],
)
def test_an_unknown_model_gets_a_cautious_stand_in_and_an_event(name: str) -> None:
    events: list[Event] = []
    model = CATALOG.find(name, events.append)
    assert not model.is_known
    assert (model.window_tokens, model.max_output_tokens, model.tariffs) == (200_000, 20_000, ())
    assert model.has_preserved_thinking
    assert not model.takes_system_role
    assert model.cache_min_tokens == max(item.cache_min_tokens for item in MODELS)
    assert events == [ModelUnknown(name, 200_000)]


def test_the_long_suffix_widens_any_model() -> None:
    events: list[Event] = []
    assert CATALOG.find("claude-sonnet-4-5-20250929[1m]").window_tokens == 1_000_000
    assert CATALOG.find("local-model[1m]", events.append).window_tokens == 1_000_000
    assert events == [ModelUnknown("local-model[1m]", 1_000_000)]


@given(st.sampled_from(MODELS), st.dates().map(lambda day: day.strftime("%Y%m%d").zfill(8)))
def test_a_date_never_changes_which_model_it_is(model: Model, stamp: str) -> None:
    assert CATALOG.find(f"{model.name}-{stamp}") is model
    assert CATALOG.find(f"us.anthropic.{model.name}-{stamp}-v1:0") is model
    assert CATALOG.find(f"{model.name}@{stamp}") is model


@given(st.text(max_size=60))
def test_no_name_makes_the_search_fail(name: str) -> None:
    model = CATALOG.find(name)
    assert model.is_known == (model in MODELS) or name.endswith("[1m]")


def test_a_user_corrects_one_price_of_a_known_model() -> None:
    ours = CATALOG.with_overrides({"claude-opus-5-5": ModelSettings(input_usd_per_mtok=Decimal(3))})
    tariff = ours.find("us.anthropic.claude-opus-5-5-v1:0").prices_at()
    assert tariff is not None
    assert tariff.prices.fresh == 3
    assert tariff.prices.output == 20
    assert CATALOG.find("claude-opus-5-5").prices_at() != tariff


def test_a_users_price_holds_for_every_day_and_every_prompt_size() -> None:
    own = ModelSettings(cache_read_usd_per_mtok=Decimal("0.03"))
    ours = CATALOG.with_overrides({"claude-haiku-5-5": own, "claude-sonnet-5-5": own})
    haiku, sonnet = ours.find("claude-haiku-5-5"), ours.find("claude-sonnet-5-5")
    assert all(item.for_prompt(size).read == Decimal("0.03") for item in haiku.tariffs for size in (1, 10**6))
    assert [item.prices.read for item in sonnet.tariffs] == [Decimal("0.03")] * 2


def test_a_users_own_model_is_known_with_what_was_said_of_it() -> None:
    own = ModelSettings(
        window_tokens=32_000,
        max_output_tokens=4_000,
        cache_min_tokens=0,
        input_usd_per_mtok=Decimal("0.5"),
        output_usd_per_mtok=Decimal("1.5"),
        cache_read_usd_per_mtok=Decimal("0.05"),
    )
    events: list[Event] = []
    model = CATALOG.with_overrides({"my-model": own}).find("my-model", events.append)
    assert events == []
    assert (model.window_tokens, model.max_output_tokens, model.cache_min_tokens) == (32_000, 4_000, 0)
    tariff = model.prices_at()
    assert tariff is not None
    assert (tariff.prices.read, tariff.prices.written_5m) == (Decimal("0.05"), Decimal("0.5"))


def test_a_users_own_model_without_a_price_has_no_cost() -> None:
    model = CATALOG.with_overrides({"my-model": ModelSettings(window_tokens=32_000)}).find("my-model")
    assert compute_cost(Usage(fresh=1), model) is None


@pytest.mark.parametrize("name", ["gpt-6", "anthropic/gpt-6", "gpt-6[1m]"])
def test_a_users_own_model_without_a_price_is_known_and_the_missing_price_is_told(name: str) -> None:
    events: list[Event] = []
    ours = CATALOG.with_overrides({"gpt-6": ModelSettings(window_tokens=400_000)})
    assert ours.find(name, events.append).is_known
    assert events == [PriceUnknown(name)]


def test_a_user_says_what_a_model_of_their_own_accepts() -> None:
    own = ModelSettings(has_preserved_thinking=False, takes_system_role=True)
    model = CATALOG.with_overrides({"gpt-6": own}).find("gpt-6")
    assert (model.has_preserved_thinking, model.enforces_prefix, model.takes_system_role) == (
        False,
        False,
        True,
    )
    silent = CATALOG.with_overrides({"gpt-6": ModelSettings(window_tokens=400_000)}).find("gpt-6")
    assert (silent.has_preserved_thinking, silent.takes_system_role) == (True, False)


def test_half_a_price_for_a_new_model_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"models\.my-model.*both input_usd_per_mtok and"):
        CATALOG.with_overrides({"my-model": ModelSettings(output_usd_per_mtok=Decimal(1))})


def test_a_price_for_one_gateway_leaves_the_others_alone() -> None:
    ours = CATALOG.with_overrides(
        {"anthropic/claude-opus-5-5": ModelSettings(output_usd_per_mtok=Decimal(1))}
    )
    dear, cheap = ours.find("claude-opus-5-5").prices_at(), ours.find("anthropic/claude-opus-5-5").prices_at()
    assert dear is not None
    assert cheap is not None
    assert (dear.prices.output, cheap.prices.output) == (20, 1)


def test_a_price_that_cannot_be_used_names_the_source_it_came_from() -> None:
    settings = merge_settings(
        [ModelSettings],
        [
            RawSettings(
                source=SettingSource.USER,
                where="settings.toml",
                tables={"models": {"mine": {"input_usd_per_mtok": 1}}},
            )
        ],
        environ={},
        user_home=Path("/home/somebody"),
    )
    with pytest.raises(
        SettingsError, match=r"user file \(settings.toml\): models.mine.input_usd_per_mtok = 1"
    ):
        build_catalog(settings)


def test_a_model_with_prices_alone_leaves_its_window_to_the_next_source() -> None:
    prices = ModelSettings(input_usd_per_mtok=Decimal(1), output_usd_per_mtok=Decimal(2))
    model = CATALOG.with_overrides({"mine": prices}).find("mine")
    assert choose_window("mine", model, (), WindowSettings(tokens=500_000)) == 500_000
    assert choose_window("mine", model, ("context-1m-2025-08-07",), WindowSettings()) == 1_000_000


def test_the_cheapest_model_is_one_of_the_same_provider_and_has_a_price() -> None:
    day = date(2026, 11, 1)
    for own in MODELS:
        family = own.name.partition("-")[0]
        found = find_cheapest_model(own, CATALOG, day)
        priced = [
            tariff.prices.fresh
            for model in CATALOG.models
            if model.name.startswith(f"{family}-") and (tariff := model.prices_at(day))
        ]
        assert found is not None
        assert found.name.startswith(f"{family}-")
        tariff = found.prices_at(day)
        assert tariff is not None
        assert tariff.prices.fresh == min(priced)
