"""What model calls used and cost, by caller."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date

from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.prices import NO_COST, Cost, compute_cost, compute_uncached_cost, sum_costs
from sevenfold.core.requests import ModelResponse
from sevenfold.core.usage import NO_USAGE, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendSummary:
    """What the calls of one lane used, or of all."""

    who: str
    calls: int = 0
    usage: Usage = NO_USAGE
    """All runs together, those beside the totals included: to be counted, not priced."""
    cost: Cost | None = NO_COST
    """None when the price of one call is not known: a part is no total."""
    cost_without_caching: Cost | None = NO_COST
    """What the same calls would have cost with every prompt token fresh."""

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that came out of the cache."""
        return self.usage.read / self.usage.prompt if self.usage.prompt else 0.0


class UsageLedger:
    """Every call's usage and price, summed up by whose call it was."""

    def __init__(self, catalog: Catalog = CATALOG) -> None:
        self._catalog = catalog
        self._lanes: dict[str, SpendSummary] = {}

    def add(self, who: str, model: str, reply: ModelResponse, when: date) -> Cost | None:
        """Book one call; its price, or None when that is not known."""
        return self.add_usage(who, reply.model or model, reply.usage, when)

    def add_usage(self, who: str, model: str, usage: Usage, when: date) -> Cost | None:
        """The same for a call of which no more than its usage is known."""
        price = plain = None
        if usage.requests:
            billed = self._catalog.find(model)
            price = compute_cost(usage, billed, when=when, catalog=self._catalog)
            plain = compute_uncached_cost(usage, billed, when=when, catalog=self._catalog)
        lane = self._lanes.get(who, SpendSummary(who=who))
        self._lanes[who] = SpendSummary(
            who=who,
            calls=lane.calls + 1,
            usage=lane.usage + _all_runs(usage),
            cost=sum_costs((lane.cost, price)),
            cost_without_caching=sum_costs((lane.cost_without_caching, plain)),
        )
        return price

    def spent(self) -> tuple[SpendSummary, ...]:
        """By lane, in the order of their first calls."""
        return tuple(self._lanes.values())

    def total(self) -> SpendSummary:
        return _total(self._lanes.values())


def _all_runs(usage: Usage) -> Usage:
    """One call's tokens without its list of runs, which would make a sum longer with every call."""
    beside = (
        Usage(
            fresh=run.fresh,
            read=run.read,
            written_5m=run.written_5m,
            written_1h=run.written_1h,
            output=run.output,
        )
        for run in usage.beside
    )
    whole = sum(beside, replace(usage, iterations=()))
    return replace(whole, requests=usage.requests)


def _total(lanes: Iterable[SpendSummary]) -> SpendSummary:
    listed = tuple(lanes)
    return SpendSummary(
        who="all",
        calls=sum(lane.calls for lane in listed),
        usage=sum((lane.usage for lane in listed), NO_USAGE),
        cost=sum_costs(lane.cost for lane in listed),
        cost_without_caching=sum_costs(lane.cost_without_caching for lane in listed),
    )
