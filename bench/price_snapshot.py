"""Writes the price list that comes with Sevenfold, from the data of the package `genai-prices`.

    make prices                                         # installs the package apart, then runs this
    python bench/price_snapshot.py --check              # exit code 1 if the list would change

The list has one model a line: the names it goes by, its provider, and what it costs from which day on, in US
dollars for a million tokens (fresh, written for 5 minutes, for 1 hour, read, output), with the prices of long
prompts. Models that do not take and give text by the token are left out. `core/models.py` has priority over
the list, and `tests/core/test_price_list.py` shows where the two differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias, cast

TARGET = Path(__file__).parents[1] / "src" / "sevenfold" / "core" / "price_list.json"
PROVIDERS = ("anthropic", "openai", "google", "x-ai", "deepseek", "mistral", "moonshotai", "zai", "minimax")
"""Those that make models. What resellers ask is theirs, and under the names that they use."""

_Foreign: TypeAlias = Any
"""Values of the package, which is not installed where types are checked."""
_Row: TypeAlias = dict[str, object]


def list_rows() -> Iterator[_Row]:
    """One row a model that has prices for text."""
    data: _Foreign = import_module("genai_prices.data")
    found = {item.id: item for item in cast("list[_Foreign]", data.providers)}
    for provider in PROVIDERS:
        for model in found[provider].models:
            tariffs = list(_tariffs(model.prices))
            if tariffs:
                names = sorted({model.id, *_names(model.match)}, key=lambda name: (name != model.id, name))
                yield {"names": names, "provider": provider, "tariffs": tariffs}


def _names(clause: _Foreign) -> Iterator[str]:
    """Whole names; `core/price_list.py` takes dates off by itself."""
    for name in (getattr(clause, "equals", None), getattr(clause, "starts_with", None)):
        if name:
            yield name.rstrip("-@")
    for inner in getattr(clause, "or_", None) or ():
        yield from _names(inner)


def _tariffs(prices: _Foreign) -> Iterator[_Row]:
    if not isinstance(prices, list):
        yield from _tariff(prices, None)
        return
    for item in cast("list[_Foreign]", prices):
        since = getattr(item.constraint, "start_date", None)
        # Prices by the hour of the day are discounts: the full price holds without them.
        if item.constraint is None or since is not None:
            yield from _tariff(item.prices, since)


def _tariff(prices: _Foreign, since: date | None) -> Iterator[_Row]:
    if prices.input_mtok is None or prices.output_mtok is None:
        return
    row: _Row = {"since": since.isoformat() if since else None, "prices": _columns(prices, is_long=False)}
    values = cast("dict[str, _Foreign]", vars(prices)).values()
    starts = {tier.start for value in values for tier in getattr(value, "tiers", ())}
    if len(starts) > 1:
        raise SystemExit(f"error: prices with {len(starts)} tiers: {prices}; the list has room for one")
    if starts:
        row |= {"long_above_tokens": starts.pop(), "long_prices": _columns(prices, is_long=True)}
    yield row


def _columns(prices: _Foreign, *, is_long: bool) -> list[str]:
    """Without a price for caching, such a token costs what a fresh one does."""

    def usd(name: str, default: str) -> str:
        value = getattr(prices, name, None)
        if value is None:
            return default
        tiers = getattr(value, "tiers", None)
        if tiers is not None:
            value = tiers[0].price if is_long else value.base
        return f"{value.normalize():f}"

    fresh = usd("input_mtok", "")
    short = usd("cache_write_mtok", fresh)
    return [
        *(fresh, short, usd("cache_write_1h_mtok", short)),
        *(usd("cache_read_mtok", fresh), usd("output_mtok", "")),
    ]


def render_list(rows: list[_Row], day: str) -> str:
    head = json.dumps({"source": f"genai-prices {version('genai-prices')}", "day": day})[:-1]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    return f'{head}, "models": [\n{lines}\n]}}\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if it would change")
    options = parser.parse_args()
    rows = list(list_rows())
    is_same = TARGET.exists() and json.loads(TARGET.read_text(encoding="utf-8"))["models"] == rows
    print(f"{len(rows)} models of {len(PROVIDERS)} providers; {'as before' if is_same else 'changed'}")
    if options.check:
        return 0 if is_same else 1
    if not is_same:
        TARGET.write_text(render_list(rows, f"{datetime.now(UTC):%Y-%m-%d}"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
