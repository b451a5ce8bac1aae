"""What a recorded call cost: at its own model's price on its day, or at another model's of today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypeAlias

from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.models import ONE, Model
from sevenfold.core.prices import Cost, compute_cost, compute_uncached_cost
from sevenfold.core.usage import Usage

UNNAMED_MODEL = "(unnamed)"
"""Where a log does not say which model answered. A user may give it a price like any other."""

PriceGap: TypeAlias = Literal["model", "speed", "runs"]
"""What has no price: the model; the speed at which a priced model ran; or runs inside a request, of which one
was on a model without a price, or which do not add up to the bill."""

FAST_SPEED = "fast"
_ROWS: Mapping[PriceGap, str] = {"model": "{}", "speed": "{} (fast)", "runs": "{} (several models)"}
"""Calls of a priced model that have no price stand in a row of their own: its others keep theirs."""

NANO_USD = Decimal("0.000000001")
"""Shares of a bill are rounded to billionths of a dollar, so that their sums are exact."""


@dataclass(frozen=True, slots=True)
class CallRates:
    """US dollars a prompt token of one call: read from the cache, and on average not."""

    read: Decimal
    paid: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPrice:
    """One call's price. Without one, all is None: a model that no table knows is not free."""

    row: str
    """Under which name it is counted: a dated id goes to its family."""
    gap: PriceGap | None = None
    cost: Cost | None = None
    uncached: Cost | None = None
    """What it would have cost with no prompt cache."""
    rates: CallRates | None = None


class CallPricer:
    """Prices calls. Remembers the models it has looked up: a session asks for the same one all the time.

    `emit` is told once of each model that no table knows, or that has no price.
    """

    __slots__ = ("_catalog", "_emit", "_known", "_reprice")

    def __init__(
        self, catalog: Catalog = CATALOG, reprice: Model | None = None, emit: Emit = ignore_event
    ) -> None:
        self._catalog = catalog
        self._reprice = reprice
        self._emit = emit
        self._known: dict[str, Model] = {}

    def find(self, name: str) -> Model:
        """The model of that name, whatever prices are asked for."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._catalog.find(name or UNNAMED_MODEL, self._emit)
        return found

    def price(self, usage: Usage, name: str, when: datetime | None) -> CallPrice:
        model = self.find(name)
        if self._reprice is not None:
            return self._at(_as_standard(usage), self._reprice, None, model.name)
        for run in usage.iterations:
            if run.model:
                self.find(run.model)  # so that a model without a price is told of, whoever called it
        return self._at(usage, model, when, model.name)

    def _at(self, usage: Usage, model: Model, when: datetime | None, row: str) -> CallPrice:
        spent = compute_cost(usage, model, when=when, catalog=self._catalog)
        if spent is None:
            gap = _gap(usage, model)
            return CallPrice(row=_ROWS[gap].format(row), gap=gap)
        bare = compute_uncached_cost(usage, model, when=when, catalog=self._catalog)
        return CallPrice(row=row, gap=None, cost=spent, uncached=bare, rates=self._rates(usage, model, when))

    def _rates(self, usage: Usage, model: Model, when: datetime | None) -> CallRates | None:
        """Of the request's own tokens: what was billed beside them (compaction) says nothing of theirs."""
        own = replace(usage, iterations=())
        tariff, spent = model.prices_at(when), compute_cost(own, model, when=when, catalog=self._catalog)
        if tariff is None or spent is None:
            return None
        prices = tariff.for_prompt(own.prompt)
        written = own.written_5m * prices.written_5m + own.written_1h * prices.written_1h
        unread = own.fresh * prices.fresh + written
        listed = unread + own.read * prices.read + own.output * prices.output
        # Batch, region and speed: they hold for what was not read, too.
        factor = spent.total * 1_000_000 / listed if listed else ONE
        read, count = factor * prices.read, own.fresh + own.written
        return CallRates(read / 1_000_000, (factor * unread / count if count else read) / 1_000_000)


def _gap(usage: Usage, model: Model) -> PriceGap:
    if not model.tariffs:
        return "model"
    return "speed" if usage.speed == FAST_SPEED and model.fast_factor is None else "runs"


def _as_standard(usage: Usage) -> Usage:
    """Without what only its own model has: its fast mode, and other models beside it."""
    runs = tuple(replace(run, model=None) for run in usage.iterations)
    return replace(usage, speed=None, iterations=runs)
