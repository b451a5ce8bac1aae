"""What a recorded call cost: at its own model's price on its day, or at another model's of today."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.models import Model
from sevenfold.core.prices import Cost, cost, cost_without_caching
from sevenfold.core.usage import Usage

UNNAMED = "(unnamed)"
"""Where a log does not say which model answered. A user may give it a price like any other."""

NANO = Decimal("0.000000001")
"""Shares of a bill are rounded to billionths of a dollar, so that their sums are exact."""


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars a prompt token of one call: read from the cache, and on average not."""

    read: Decimal
    paid: Decimal


@dataclass(frozen=True, slots=True)
class Priced:
    """One call's price. Without one, all is None: a model that no table knows is not free."""

    row: str
    """Under which name it is counted: a dated id goes to its family."""
    cost: Cost | None = None
    uncached: Cost | None = None
    """What it would have cost with no prompt cache."""
    rates: Rates | None = None


class Pricer:
    """Prices calls. Remembers the models it has looked up: a session asks for the same one all the time."""

    __slots__ = ("_catalog", "_known", "_reprice")

    def __init__(self, catalog: Catalog = CATALOG, reprice: Model | None = None) -> None:
        self._catalog = catalog
        self._reprice = reprice
        self._known: dict[str, Model] = {}

    def find(self, name: str) -> Model:
        """The model of that name, whatever prices are asked for."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._catalog.find(name or UNNAMED)
        return found

    def price(self, usage: Usage, name: str, when: datetime | None) -> Priced:
        model = self.find(name)
        if self._reprice is not None:
            return self._at(_as_standard(usage), self._reprice, None, name)
        return self._at(usage, model, when, name)

    def _at(self, usage: Usage, model: Model, when: datetime | None, name: str) -> Priced:
        row = self.find(name).name
        spent = cost(usage, model, when=when, catalog=self._catalog)
        if spent is None:
            # A known model without a price for this speed: its other calls keep theirs.
            return Priced(f"{row} ({usage.speed})" if model.tariffs else row)
        bare = cost_without_caching(usage, model, when=when, catalog=self._catalog)
        return Priced(row, spent, bare, _rates(usage, spent, model, when))


def _rates(usage: Usage, spent: Cost, model: Model, when: datetime | None) -> Rates | None:
    tariff = model.prices_at(when)
    if tariff is None:
        return None
    prices = tariff.for_prompt(usage.prompt)
    listed = prices.read / 1_000_000
    unread = usage.fresh + usage.written
    read = spent.read / usage.read if usage.read else listed
    paid = (spent.fresh + spent.written_5m + spent.written_1h) / unread if unread else listed
    return Rates(read, paid)


def _as_standard(usage: Usage) -> Usage:
    """Without what only its own model has: its fast mode, and other models beside it."""
    runs = tuple(replace(run, model=None) for run in usage.iterations)
    return replace(usage, speed=None, iterations=runs)
