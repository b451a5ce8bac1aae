"""Dollars in words: the state of the prompt cache, what a switch of models bills, and the bill by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from sevenfold.agent.tui.render.status_line import StatusLine
from sevenfold.agent.tui.render.wrapped_text import LabelledText
from sevenfold.core.cache.prompt_blocks import FIVE_MINUTES, ONE_HOUR
from sevenfold.core.models import Model
from sevenfold.core.prices import Cost, sum_costs
from sevenfold.core.requests import Dialect
from sevenfold.core.usage import Usage
from sevenfold.session.budget import MAIN_KIND
from sevenfold.session.cache.monitor import SpendSummary

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class CacheState:
    """What the last answer left in the provider's cache."""

    tokens: int
    since: datetime
    """When the request was sent: an entry lives from its last use."""
    ttl: timedelta | None
    """None: the provider keeps a cache of its own, and says of no time how long."""
    is_cut: bool = False
    """The context was cut since: so many tokens are left, and are written with the next prompt."""

    def left(self, now: datetime) -> timedelta:
        return self.since + self.ttl - now if self.ttl else timedelta()


def read_cache_state(
    usage: Usage, since: datetime, before: CacheState | None = None, *, dialect: Dialect = "anthropic"
) -> CacheState | None:
    """None where the provider bills no cache, or nothing of the prompt is in it. A request that wrote nothing
    keeps alive what was there `before`."""
    run = usage.last_run or usage
    cached = run.read + run.written
    if not cached:
        return None
    if dialect != "anthropic":
        return CacheState(cached, since, None)
    kept = before.ttl if before and not run.written else FIVE_MINUTES
    return CacheState(cached, since, ONE_HOUR if run.written_1h else kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutBill:
    """What the first request after a cut sent anew."""

    tokens: int
    model: str
    ttl: timedelta
    is_cached: bool
    """Whether it was written to the cache, or is too short for it."""


def read_cut_bill(usage: Usage, model: str) -> CutBill:
    run = usage.last_run or usage
    return CutBill(
        tokens=run.written or run.fresh,
        model=model,
        ttl=ONE_HOUR if run.written_1h else FIVE_MINUTES,
        is_cached=bool(run.written),
    )


def price_cold_prompt(
    tokens: int, model: Model, day: date, ttl: timedelta | None = FIVE_MINUTES
) -> Decimal | None:
    """What it costs more to write so many tokens to the cache than to read them from it."""
    whole, tariff = price_first_prompt(tokens, model, day, ttl), model.prices_at(day)
    if whole is None or tariff is None:
        return None
    return whole - tokens * tariff.for_prompt(tokens).read / _MILLION


def price_first_prompt(
    tokens: int, model: Model, day: date, ttl: timedelta | None = FIVE_MINUTES
) -> Decimal | None:
    """What a model bills for a context that its cache does not have. One too short for the cache is not
    written to it."""
    tariff = model.prices_at(day)
    if tariff is None:
        return None
    prices = tariff.for_prompt(tokens)
    written = prices.written_1h if ttl == ONE_HOUR else prices.written_5m
    return tokens * (prices.fresh if tokens < model.cache_min_tokens else written) / _MILLION


def render_cache_state(
    state: CacheState | None, model: Model, now: datetime, *, is_exact: bool = False
) -> str:
    """How long the cache stays warm, and what letting it go cold costs; `is_exact` says until when."""
    if state is None:
        return ""
    left, price = state.left(now), price_cold_prompt(state.tokens, model, now.date(), state.ttl)
    cost = "" if price is None else f"+{render_dollars(price)}"
    if state.is_cut:
        return f"cache cut{f': next prompt up to {cost}' if cost else ''}"
    if state.ttl is None:
        return f"cache kept by the provider{f', without it {cost}' if cost else ''}"
    if left <= timedelta():
        return f"cache cold{f': next prompt {cost}' if cost else ''}"
    until = f" until {(now + left).astimezone():%H:%M}," if is_exact else ""
    minutes = max(1, round(left.total_seconds() / 60))
    return f"cache warm{until} {minutes} min{f', then {cost}' if cost else ''}"


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


def merge_spent(earlier: Sequence[SpendSummary], now: Sequence[SpendSummary]) -> tuple[SpendSummary, ...]:
    """Both, by whose calls they were."""
    merged = {one.who: one for one in earlier}
    for one in now:
        merged[one.who] = merged[one.who] + one if one.who in merged else one
    return tuple(merged.values())


def list_layer_costs(spent: Sequence[SpendSummary]) -> list[LabelledText]:
    """One row for the conversation and for each layer that asks a model."""
    return [
        LabelledText(
            _LAYERS.get(one.who, "conversation" if one.who == MAIN_KIND else f"layer 7, {one.who}"),
            f"{render_cost(one.cost)}  {one.calls:,} call{'' if one.calls == 1 else 's'}, "
            f"{one.hit_rate:.0%} of the prompt from the cache",
        )
        for one in spent
    ]


def list_cost_sums(spent: Sequence[SpendSummary]) -> list[LabelledText]:
    """What all of it cost, and what the same would have cost otherwise."""
    plain = sum_costs(one.cost_without_caching for one in spent)
    own, saved = _sum_without_layers(spent), compute_saved(spent)
    rows = [
        LabelledText("in all", render_cost(sum_costs(one.cost for one in spent))),
        LabelledText("without caching", f"{render_cost(plain)}, for the same requests"),
    ]
    if saved is not None:
        agents = " and its agents" if any(_is_agent(one) for one in spent) else ""
        told = f"for this conversation{agents} with no cache and no layers"
        rows += [
            LabelledText("without Sevenfold", f"at least {render_cost(own)}, {told}"),
            LabelledText("saved", render_saved(saved)),
        ]
    return rows


def fill_costs(status: StatusLine, spent: Sequence[SpendSummary], unbilled: int) -> StatusLine:
    """The status line with what was spent and saved. A request that is under way has no bill yet."""
    total, saved = sum_costs(one.cost for one in spent), compute_saved(spent)
    return replace(
        status,
        spent_usd=None if total is None else float(total.total),
        saved_usd=None if saved is None else float(saved),
        has_unbilled=unbilled > 0 and not status.is_working,
    )


def describe_unbilled(count: int) -> str:
    """Requests that are under way, or were interrupted: what they cost is not known."""
    return f"{count} request{'' if count == 1 else 's'} without a bill so far" if count > 0 else ""


def render_saved(saved: Decimal) -> str:
    """What Sevenfold saved so far. Below zero at first: writing the cache costs more than not caching."""
    if saved >= 0:
        return render_dollars(saved)
    return f"nothing yet: it cost {render_dollars(-saved)} more so far, for what later prompts read"


def compute_saved(spent: Sequence[SpendSummary]) -> Decimal | None:
    """What the conversation would have cost without cache and layers, less what all of it cost."""
    total, own = sum_costs(one.cost for one in spent), _sum_without_layers(spent)
    return None if total is None or own is None else own.total - total.total


def _sum_without_layers(spent: Sequence[SpendSummary]) -> Cost | None:
    """The conversation and the agents that it started, with no cache. What layers asked a model is not in it:
    without them nobody would have."""
    return sum_costs(one.cost_without_caching for one in spent if one.who not in _LAYERS)


def _is_agent(one: SpendSummary) -> bool:
    return one.who != MAIN_KIND and one.who not in _LAYERS


def render_cost(cost: Cost | None) -> str:
    return "unpriced" if cost is None else f"${cost.total.quantize(Decimal('0.0001')):,}"
