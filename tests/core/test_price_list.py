"""The generated list of prices: OpenAI's tiers, our own table before it, and where the two differ."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from importlib.resources import files

import pytest

from sevenfold.core.events import Event, ModelUnknown
from sevenfold.core.models import MODELS
from sevenfold.core.price_list import read_price_list
from sevenfold.core.prices import CATALOG, ModelSettings, compute_cost
from sevenfold.core.usage import Usage

MILLION = 1_000_000

DIFFERENCES = {
    "claude-fable-5-2": "not on the list",
    "claude-mythos-5-2": "not on the list",
    "claude-mythos-5-1": "not on the list",
    "claude-mythos-5": "not on the list",
    "claude-sonnet-5-5": "the list has no price from before 2026-10-07",
    "claude-opus-4-6": "the list has a tier above 200,000 tokens until 2026-03-13",
    "claude-sonnet-4-6": "the list has a tier above 200,000 tokens until 2026-03-13",
    "claude-sonnet-4-5": "the list has a tier above 200,000 tokens",
}
"""Where our table and the list do not agree. Our table counts."""


def test_our_table_and_the_list_differ_in_these_models_alone() -> None:
    listed = read_price_list().tariffs
    assert {model.name for model in MODELS if listed.get(model.name) != model.tariffs} == set(DIFFERENCES)


def test_what_holds_today_differs_in_no_model_but_one_tier() -> None:
    listed = read_price_list().tariffs
    today = {
        model.name
        for model in MODELS
        if model.name in listed
        and (ours := model.prices_at())
        and (ours.prices, ours.long_prices)
        != (listed[model.name][-1].prices, listed[model.name][-1].long_prices)
    }
    assert today == {"claude-sonnet-4-5"}


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        ("gpt-5", Usage(fresh=MILLION), "1.25"),
        ("gpt-5-codex", Usage(read=MILLION), "0.125"),
        ("gpt-5.3-codex", Usage(output=MILLION), "14"),
        ("gpt-5.5", Usage(fresh=200_000, read=72_000), "1.036"),
        ("gpt-5.5", Usage(fresh=200_000, read=72_001), "2.072001"),
        ("gpt-5.5-2026-04-23", Usage(output=1_000), "0.03"),
        ("openai/gpt-5.6", Usage(written_5m=100_000), "0.5"),
        ("gpt-5.6-luna", Usage(read=MILLION), "0.04"),
        ("gemini-2.5-pro", Usage(fresh=100_000), "0.125"),
    ],
)
def test_openai_and_others_have_cached_input_writes_and_tiers(model: str, usage: Usage, usd: str) -> None:
    cost = compute_cost(usage, CATALOG.find(model), when=date(2026, 11, 16))
    assert cost is not None
    assert cost.total == Decimal(usd)


def test_a_call_has_the_price_of_its_day() -> None:
    sol, usage = CATALOG.find("gpt-5.6-sol"), Usage(output=MILLION)
    before, after = (compute_cost(usage, sol, when=date(2026, 8, day)) for day in (20, 21))
    assert before is not None
    assert after is not None
    assert (before.total, after.total) == (Decimal(30), Decimal(20))


def test_a_listed_model_has_a_price_and_its_window_stays_a_guess() -> None:
    events: list[Event] = []
    model = CATALOG.find("gpt-5.5", events.append)
    assert model.tariffs
    assert (model.is_known, model.has_window) == (False, False)
    assert events == [ModelUnknown("gpt-5.5", 200_000)]


def test_a_users_price_goes_before_the_list() -> None:
    own = CATALOG.with_overrides({"gpt-5.5": ModelSettings(output_usd_per_mtok=Decimal(1))})
    cost = compute_cost(Usage(output=MILLION, fresh=MILLION), own.find("gpt-5.5"))
    assert cost is not None
    assert (cost.output, cost.fresh) == (Decimal(1), Decimal(10))


def test_the_list_says_where_it_is_from_and_has_five_columns_of_plain_numbers() -> None:
    wire = json.loads((files("sevenfold.core") / "price_list.json").read_text(encoding="utf-8"))
    assert wire["source"].startswith("genai-prices ")
    assert read_price_list().day >= date(2026, 11, 16)
    rows = [tariff for model in wire["models"] for tariff in model["tariffs"]]
    columns = [row[key] for row in rows for key in ("prices", "long_prices") if key in row]
    assert len(columns) > 300
    assert all(len(row) == 5 and all(Decimal(usd) >= 0 for usd in row) for row in columns)
