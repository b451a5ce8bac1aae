"""Dollars in words: the state of the prompt cache, what a switch of models bills, and the bill by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from sevenfold.core.cache.prompt_blocks import FIVE_MINUTES, ONE_HOUR
from sevenfold.core.models import Model
from sevenfold.core.prices import Cost, sum_costs
from sevenfold.core.usage import Usage
from sevenfold.session.budget import MAIN_KIND
from sevenfold.session.cache.monitor import SpendSummary

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class CacheState:
    """What the last answer left in the provider's cache."""

    tokens: int
    since: datetime
    ttl: timedelta

    def left(self, now: datetime) -> timedelta:
        return self.since + self.ttl - now


def read_cache_state(usage: Usage, now: datetime) -> CacheState | None:
    """None where the provider bills no cache, or nothing of the prompt is in it."""
    run = usage.last_run or usage
    cached = run.read + run.written
    if not cached:
        return None
    return CacheState(cached, now, ONE_HOUR if run.written_1h else FIVE_MINUTES)


def price_cold_prompt(tokens: int, model: Model, day: date) -> Decimal | None:
    """What it costs more to write so many tokens to the cache than to read them from it."""
    tariff = model.prices_at(day)
    if tariff is None:
        return None
    prices = tariff.for_prompt(tokens)
    return tokens * (prices.written_5m - prices.read) / _MILLION


def price_first_prompt(tokens: int, model: Model, day: date) -> Decimal | None:
    """What a model bills for a context that its cache does not have."""
    tariff = model.prices_at(day)
    return None if tariff is None else tokens * tariff.for_prompt(tokens).written_5m / _MILLION


def render_cache_state(state: CacheState | None, model: Model, now: datetime) -> str:
    """For the status line: how long the cache stays warm, and what letting it go cold costs."""
    if state is None:
        return ""
    left, price = state.left(now), price_cold_prompt(state.tokens, model, now.date())
    cost = "" if price is None else f" {render_dollars(price)}"
    if left <= timedelta():
        return f"cache cold{f': next prompt +{cost.strip()}' if cost else ''}"
    minutes = max(1, round(left.total_seconds() / 60))
    return f"cache warm {minutes} min{f', then +{cost.strip()}' if cost else ''}"


def render_dollars(amount: Decimal | float) -> str:
    """Cents where there are any: a thousandth of a dollar is still a figure."""
    return f"${amount:.2f}" if abs(amount) >= Decimal("0.1") else f"${amount:.4f}"


def render_prices(model: Model, day: date) -> str:
    tariff = model.prices_at(day)
    if tariff is None:
        return "price not known"
    prices = tariff.prices
    return f"${_plain(prices.fresh)} in, ${_plain(prices.output)} out, ${_plain(prices.read)} cached"


def _plain(amount: Decimal) -> str:
    return f"{amount.normalize():f}"


_LAYERS = {
    "notes": "layer 3, notes",
    "summary": "layer 4, compaction",
    "extraction": "layer 5, extraction",
    "recall": "layer 5, recall",
    "dream": "layer 6, dreams",
    "living doc": "living documents",
    "progress": "layer 7, progress of agents",
}


def render_cost_lines(spent: Sequence[SpendSummary]) -> list[str]:
    """One line for the conversation and for each layer that asks a model, then both sums."""
    names = [
        _LAYERS.get(one.who, "conversation" if one.who == MAIN_KIND else f"layer 7, {one.who}")
        for one in spent
    ]
    width = max((len(name) for name in names), default=0)
    lines = [
        f"{name:{width}}  {one.calls:>5} calls  {one.hit_rate:6.1%} of the prompt from the cache  "
        f"{render_cost(one.cost)}"
        for name, one in zip(names, spent, strict=True)
    ]
    total = sum_costs(one.cost for one in spent)
    plain = sum_costs(one.cost_without_caching for one in spent)
    own = sum_costs(one.cost_without_caching for one in spent if one.who == MAIN_KIND)
    lines.append(f"in all {render_cost(total)}; without caching {render_cost(plain)}")
    saved = compute_saved(spent)
    if saved is not None:
        amount = render_dollars(abs(saved))
        so_far = f"saved {amount}" if saved >= 0 else f"has cost {amount} more so far"
        lines.append(
            f"without Sevenfold at least {render_cost(own)} (the same conversation, no cache, no layers): "
            f"Sevenfold {so_far}"
        )
    return lines


def compute_saved(spent: Sequence[SpendSummary]) -> Decimal | None:
    """What the conversation would have cost without cache and layers, less what all of it cost."""
    total = sum_costs(one.cost for one in spent)
    own = sum_costs(one.cost_without_caching for one in spent if one.who == MAIN_KIND)
    return None if total is None or own is None else own.total - total.total


def render_cost(cost: Cost | None) -> str:
    return "unpriced" if cost is None else f"${cost.total.quantize(Decimal('0.0001')):,}"
