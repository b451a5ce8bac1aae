"""What a request cost, by part, exactly.

Money is `Decimal`, under a context that refuses to round: integer nano-dollars would not do, since a batch of
haiku's cache reads under the US factor costs 5.5 of them a token, and a user's own price can be finer still.
Only tokens are priced: web searches and the like are billed apart and not counted here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow, localcontext

from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.errors import InputError
from sevenfold.core.models import ONE, Model, Prices
from sevenfold.core.usage import UNTOTALED_KINDS, Iteration, TokenCounts, Usage

BATCH_FACTOR = Decimal("0.5")
_PER_TOKEN = Decimal("0.000001")
_ZERO = Decimal(0)

# 13 digits of tokens times 16 of a price times the factors is under 40; the rest is room for long sums.
_EXACT = Context(prec=80, traps=[Inexact, InvalidOperation, Overflow, DivisionByZero])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """US dollars, by what became of the tokens."""

    read: Decimal = _ZERO
    written_5m: Decimal = _ZERO
    written_1h: Decimal = _ZERO
    fresh: Decimal = _ZERO
    output: Decimal = _ZERO

    @property
    def total(self) -> Decimal:
        with localcontext(_EXACT):
            return self.read + self.written_5m + self.written_1h + self.fresh + self.output

    def __add__(self, other: Cost) -> Cost:
        with localcontext(_EXACT):
            return Cost(
                read=self.read + other.read,
                written_5m=self.written_5m + other.written_5m,
                written_1h=self.written_1h + other.written_1h,
                fresh=self.fresh + other.fresh,
                output=self.output + other.output,
            )


NO_COST = Cost()
"""Where a sum starts. Never what stands for an unknown price: that is None."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What a model was paid for."""

    counts: TokenCounts
    model: Model


def compute_cost(
    usage: Usage, model: Model, *, when: date | None = None, catalog: Catalog = CATALOG
) -> Cost | None:
    """What one request cost, runs beside its totals (compaction) included; None when a price is not known.

    `when` is the day it ran (today's prices, if None). `catalog` prices a run that was made on another model.

    Where a run inside the totals names another model (a fallback), each run inside them is priced at its own
    model and their sum stands for the totals. If the runs do not add up to the totals, nobody can say whose
    the rest was: None.
    """
    if usage.requests != 1:
        raise InputError(
            f"a sum of {usage.requests} requests has no price: tiers and multipliers hold for each alone; "
            "price each one and add the costs"
        )
    inside = [
        _Run(item, _own(item, model, catalog))
        for item in usage.iterations
        if item.kind not in UNTOTALED_KINDS
    ]
    if all(run.model is model for run in inside):
        inside = [_Run(usage, model)]
    elif not _add_up(inside, usage):
        return None
    beside = [_Run(item, _own(item, model, catalog)) for item in usage.untotaled]
    return sum_costs(_run_cost(run, usage, when) for run in (*inside, *beside))


def compute_uncached_cost(
    usage: Usage, model: Model, *, when: date | None = None, catalog: Catalog = CATALOG
) -> Cost | None:
    """What the same request would have cost with no prompt cache: every prompt token fresh."""
    bare = replace(
        usage,
        **_uncached(usage),
        iterations=tuple(replace(item, **_uncached(item)) for item in usage.iterations),
    )
    return compute_cost(bare, model, when=when, catalog=catalog)


def sum_costs(costs: Iterable[Cost | None]) -> Cost | None:
    """All of them together; None when one of them is not known, since a part is no total."""
    total = NO_COST
    for item in costs:
        if item is None:
            return None
        total += item
    return total


def _uncached(counts: TokenCounts) -> dict[str, int]:
    return {"fresh": counts.prompt, "read": 0, "written_5m": 0, "written_1h": 0}


def _own(item: Iteration, model: Model, catalog: Catalog) -> Model:
    """The model it ran on: the request's, unless it names another one."""
    named = catalog.find(item.model) if item.model else model
    return model if named.name == model.name else named


def _add_up(runs: Iterable[_Run], totals: TokenCounts) -> bool:
    """Whether these are all of the totals, in every part that has a price."""
    parts = zip(*(_parts(run.counts) for run in runs), strict=True)
    return tuple(map(sum, parts)) == _parts(totals)


def _parts(counts: TokenCounts) -> tuple[int, ...]:
    return (counts.fresh, counts.read, counts.written_5m, counts.written_1h, counts.output)


def _run_cost(run: _Run, usage: Usage, when: date | None) -> Cost | None:
    tariff, factor = run.model.prices_at(when), _factor(run.model, usage)
    if tariff is None or factor is None:
        return None
    return _priced(run.counts, tariff.for_prompt(run.counts.prompt), factor)


def _factor(model: Model, usage: Usage) -> Decimal | None:
    """All multipliers together; None when the model has no price for that speed."""
    speed = model.fast_factor if usage.speed == "fast" else ONE
    if speed is None:
        return None
    with localcontext(_EXACT):
        region = model.us_factor if usage.geo == "us" else ONE
        return speed * region * (BATCH_FACTOR if usage.service_tier == "batch" else ONE)


def _priced(counts: TokenCounts, prices: Prices, factor: Decimal) -> Cost:
    with localcontext(_EXACT):
        scale = factor * _PER_TOKEN
        return Cost(
            read=counts.read * prices.read * scale,
            written_5m=counts.written_5m * prices.written_5m * scale,
            written_1h=counts.written_1h * prices.written_1h * scale,
            fresh=counts.fresh * prices.fresh * scale,
            output=counts.output * prices.output * scale,
        )
