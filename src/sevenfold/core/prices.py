"""The catalog, which finds a model by any name it goes by, and what a request cost, by part, exactly.

Money is `Decimal`, under a context that refuses to round: integer nano-dollars would not do, since a batch of
haiku's cache reads under the US factor costs 5.5 of them a token, and a user's own price can be finer still.
Only tokens are priced: web searches and the like are billed apart and not counted here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow, localcontext
from typing import ClassVar

from sevenfold.core.errors import InputError, SettingsError
from sevenfold.core.events import Emit, ModelUnknown, PriceUnknown, ignore_event
from sevenfold.core.models import (
    MODELS,
    ONE,
    Model,
    Prices,
    Tariff,
    is_local_model,
    make_local_model,
    make_unknown_model,
)
from sevenfold.core.settings import Settings, limit, price, switch
from sevenfold.core.usage import UNTOTALED_KINDS, Iteration, TokenCounts, Usage

# The catalog: the table of models, with a user's own models and prices laid over it.

LONG_SUFFIX = "[1m]"
LONG_WINDOW_TOKENS = 1_000_000

_PROVIDER = re.compile(
    r"(?:(?:anthropic|bedrock|converse|openrouter|vertex_ai|vertex|azure_ai)/)*"  # gateways' routes
    r"(?:arn:aws[a-z-]*:bedrock:[^/]{1,80}/)?"
    r"(?:(?:[a-z]{2,6}|us-gov)\.)?(?:anthropic\.)?"  # us.anthropic.…, global.anthropic.…
)
_RELEASE = re.compile(r"(?:[-@][0-9]{8}|@default|-latest)?(?:-v[0-9]{1,2}(?::[0-9]{1,2}[a-z]?)?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """One `[models."name"]`: a model of your own, or a correction to one in the table."""

    SECTION: ClassVar[str] = "models"
    EACH: ClassVar[str] = "model"

    window_tokens: int | None = limit(None, at_least=1_000)
    """As in the table, else 200,000: the smallest window still sold, so that a guess never overflows."""

    max_output_tokens: int | None = limit(None, at_least=1)
    """As in the table, else 20,000: what the window keeps free for an answer."""

    cache_min_tokens: int | None = limit(None)
    """As in the table, else 4,096: the largest minimum known, so that no saving is promised in vain."""

    input_usd_per_mtok: Decimal | None = price(None)
    """As in the table. A new model needs this and the output price, or its cost stays unknown: never zero."""

    output_usd_per_mtok: Decimal | None = price(None)
    """As in the table. See the input price."""

    cache_read_usd_per_mtok: Decimal | None = price(None)
    """As in the table, else the input price: a provider that says nothing of caching gives no discount."""

    cache_write_5m_usd_per_mtok: Decimal | None = price(None)
    """As in the table, else the input price: without a cache nothing is written, and nothing costs extra."""

    cache_write_1h_usd_per_mtok: Decimal | None = price(None)
    """As in the table, else the input price, for the same reason."""

    has_preserved_thinking: bool | None = switch(None)
    """As in the table, else true: leaving old turns alone is safe, rewriting signed ones fails a request."""

    takes_system_role: bool | None = switch(None)
    """As in the table, else false: a model refuses a role that it does not take, and none needs this one."""


@dataclass(frozen=True, slots=True)
class Catalog:
    models: tuple[Model, ...] = MODELS
    _by_name: Mapping[str, Model] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {model.name: model for model in self.models})

    def find(self, name: str, emit: Emit = ignore_event) -> Model:
        """The model of that name, in any spelling; for an unknown one a cautious stand-in, and an event.

        A model of the user's own that has no price is an event too.
        """
        table, is_long = self._by_name, has_long_suffix(name)
        found = next((table[spelling] for spelling in list_name_variants(name) if spelling in table), None)
        if found is None:
            found = make_local_model(name) if is_local_model(name) else _find_unlisted(name)
        if is_long:
            found = replace(found, window_tokens=LONG_WINDOW_TOKENS, has_window=True)
        if not found.is_known:
            emit(ModelUnknown(name, found.window_tokens))
        elif not found.tariffs:
            emit(PriceUnknown(name))
        return found

    def with_overrides(self, overrides: Mapping[str, ModelSettings]) -> Catalog:
        """This table with a user's models and prices laid over it."""
        table = dict(self._by_name)
        for name, settings in overrides.items():
            table[name] = _overridden(name, self.find(name), settings)
        return Catalog(tuple(table.values()))


CATALOG = Catalog()


def build_catalog(settings: Settings) -> Catalog:
    """The table with the models and prices that settings describe; a fault names the source that it is in."""
    try:
        return CATALOG.with_overrides(settings.each(ModelSettings))
    except SettingsError as error:
        spoken = [
            item for item in settings.resolved if item.key.startswith("models.") and item.value is not None
        ]
        sources = "; ".join(f"{item.origin}: {item.key} = {item.value}" for item in spoken)
        raise SettingsError(f"{error} (from {sources})") from error


def _find_unlisted(name: str) -> Model:
    """What is in no table of ours: of a model on the price list its prices are known, and nothing else."""
    from sevenfold.core.price_list import find_listed_model  # read only where it is needed

    listed = (find_listed_model(spelling) for spelling in list_name_variants(name))
    return next((model for model in listed if model), None) or make_unknown_model(name)


def has_long_suffix(name: str) -> bool:
    """In any case: people type `[1M]` as they read it."""
    return name[-len(LONG_SUFFIX) :].lower() == LONG_SUFFIX


def list_name_variants(name: str) -> Iterator[str]:
    """The names to look for, the most exact first: as given, then less suffix, provider, date, version."""
    yield name
    plain = name[: -len(LONG_SUFFIX)] if has_long_suffix(name) else name
    yield plain
    if len(plain) > 200:
        return
    prefix = _PROVIDER.match(plain)
    bare = plain[prefix.end() :] if prefix else plain
    # Some gateways write claude-opus-4.5, and some say mythos-5-2 without the family's name.
    for candidate in (bare, bare.replace(".", "-")):
        yield candidate
        yield from _undated(candidate)
        yield f"claude-{candidate}"


def _undated(name: str) -> Iterator[str]:
    for cut in range(len(name) - 1, 0, -1):
        if name[cut] in "-@" and _RELEASE.fullmatch(name, cut):
            yield name[:cut]


def _overridden(name: str, base: Model, settings: ModelSettings) -> Model:
    is_signed = _either(settings.has_preserved_thinking, base.has_preserved_thinking)
    return replace(
        base,
        name=name,
        window_tokens=settings.window_tokens or base.window_tokens,
        max_output_tokens=settings.max_output_tokens or base.max_output_tokens,
        cache_min_tokens=base.cache_min_tokens
        if settings.cache_min_tokens is None
        else settings.cache_min_tokens,
        tariffs=_overridden_tariffs(name, base, settings),
        has_preserved_thinking=is_signed,
        enforces_prefix=base.enforces_prefix and is_signed,
        takes_system_role=_either(settings.takes_system_role, base.takes_system_role),
        has_window=base.has_window or settings.window_tokens is not None,
        is_known=True,
    )


def _either(own: bool | None, listed: bool) -> bool:
    return listed if own is None else own


def _overridden_tariffs(name: str, base: Model, settings: ModelSettings) -> tuple[Tariff, ...]:
    if base.tariffs:
        # A user's price holds on every day and for every prompt size: it is what they say they pay.
        return tuple(
            replace(
                tariff,
                prices=_overridden_prices(tariff.prices, settings),
                long_prices=tariff.long_prices and _overridden_prices(tariff.long_prices, settings),
            )
            for tariff in base.tariffs
        )
    fresh, output = settings.input_usd_per_mtok, settings.output_usd_per_mtok
    if fresh is not None and output is not None:
        return (
            Tariff(
                _overridden_prices(
                    Prices(fresh=fresh, written_5m=fresh, written_1h=fresh, read=fresh, output=output),
                    settings,
                )
            ),
        )
    if _has_price(settings):
        raise SettingsError(
            f"models.{name}: no table knows this model, so a price for it needs both input_usd_per_mtok and "
            "output_usd_per_mtok; give both, or none"
        )
    return ()


def _overridden_prices(base: Prices, settings: ModelSettings) -> Prices:
    def chosen(own: Decimal | None, listed: Decimal) -> Decimal:
        return listed if own is None else own

    return Prices(
        fresh=chosen(settings.input_usd_per_mtok, base.fresh),
        written_5m=chosen(settings.cache_write_5m_usd_per_mtok, base.written_5m),
        written_1h=chosen(settings.cache_write_1h_usd_per_mtok, base.written_1h),
        read=chosen(settings.cache_read_usd_per_mtok, base.read),
        output=chosen(settings.output_usd_per_mtok, base.output),
    )


def _has_price(settings: ModelSettings) -> bool:
    return any(
        value is not None
        for value in (
            settings.input_usd_per_mtok,
            settings.output_usd_per_mtok,
            settings.cache_read_usd_per_mtok,
            settings.cache_write_5m_usd_per_mtok,
            settings.cache_write_1h_usd_per_mtok,
        )
    )


def find_cheapest_model(own: Model, catalog: Catalog, day: date) -> Model | None:
    """The cheapest model that whoever serves this one serves as well."""
    family = own.name.partition("-")[0]
    priced = [
        (tariff.prices.fresh, model.name, model)
        for model in catalog.models
        if model.name.partition("-")[0] == family and (tariff := model.prices_at(day))
    ]
    return min(priced)[2] if priced else None


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
        add = _EXACT.add
        return Cost(
            read=add(self.read, other.read),
            written_5m=add(self.written_5m, other.written_5m),
            written_1h=add(self.written_1h, other.written_1h),
            fresh=add(self.fresh, other.fresh),
            output=add(self.output, other.output),
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
    if not usage.iterations:
        return _run_cost(_Run(usage, model), usage, when)
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
    runs = tuple(replace(item, **_uncached(item)) for item in usage.iterations)
    bare = replace(usage, **_uncached(usage), iterations=runs)
    return compute_cost(bare, model, when=when, catalog=catalog)


def sum_costs(costs: Iterable[Cost | None]) -> Cost | None:
    """All of them together; None when one of them is not known, since a part is no total."""
    total: Cost | None = None
    for item in costs:
        if item is None:
            return None
        total = item if total is None else total + item
    return NO_COST if total is None else total


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
